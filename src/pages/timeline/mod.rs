//! The page of a session log: the calls of a session log as bars, by turn and batch.

mod groups;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use maud::{Markup, html};

use crate::log_view::timeline::{LogTimeline, LoggedRun, TimelineCall};
use crate::log_view::{DoubtNotice, KILLED, exit_label};
use crate::pages::time_axis::{
    CallDetails, TimeAxis, axis_row, bar_patterns, cut_text, details_panel, input_beginning,
    text_limit,
};
use crate::pages::timeline::groups::{CallGroup, RowPlacement, group_calls};
use crate::pages::{CHUNK_ROWS, Page, filter_form, visible_text};
use crate::terminal::{OutcomeTally, calls_label};
use toolq_core::json::expect_json;
use toolq_core::text::{format_duration, format_time};
use toolq_core::types::{Effect, OutcomeKind, PriceTable};

/// More turns than this have a scale each: on a common one, their bars would be too short to see.
const MAX_SHARED_GROUPS: usize = 20;

/// Returns the page for a log that was read from `path` and has these calls in doubt. A browser loads it again after
/// `reload_after` seconds.
pub(crate) fn timeline_page(
    timeline: &LogTimeline,
    path: &str,
    doubts: &[DoubtNotice],
    prices: &PriceTable,
    reload_after: Option<u32>,
) -> String {
    let started = timeline.runs.first().map(|run| format_time(run.started_ms));
    let title = format!("toolq session of {}", started.unwrap_or_default());
    let axis = TimeAxis::new(
        timeline
            .calls
            .iter()
            .map(|call| (call.requested_ms, timeline.end_of(call))),
    );
    let groups = group_calls(timeline);
    let shares_axis = groups.len() <= MAX_SHARED_GROUPS;
    let calls = timeline.calls.iter();
    let states: BTreeSet<_> = calls.map(|call| StateLook::of(call, timeline)).collect();
    let body = html! {
        (bar_patterns())
        header {
            h1 { (title) }
            p.path { (visible_text(path)) }
            @for run in &timeline.runs { p { (run_line(run)) } }
            @for doubt in doubts { p.doubt { (visible_text(&doubt.line())) } }
            p { (summary(timeline)) }
            @if let Some(cost) = timeline.cost.summary(prices) { p { (cost) } }
            (filter_of(timeline, &states))
        }
        main {
            (legend(timeline, &states, shares_axis))
            @if shares_axis { (axis_row(&axis, true)) }
            @for group in &groups { (group_section(group, timeline, shares_axis.then_some(&axis))) }
            p #none hidden { "No call matches the filter." }
        }
        (details_panel("its input and its result"))
        noscript { p { "The calls are listed above; their inputs and results need scripts." } }
    };
    Page {
        title,
        body,
        data: calls_json(timeline),
        script: concat!(include_str!("../filter.js"), include_str!("../calls.js")),
        reload_after,
    }
    .into_html()
}

/// Describes a run: `with tools.yaml: exit 0 after 44ms`.
fn run_line(run: &LoggedRun) -> String {
    let input = match run.input.as_deref() {
        Some("-") => " from stdin".to_owned(),
        Some(path) => format!(" of {path}"),
        None => String::new(),
    };
    let end = match &run.end {
        Some(end) => format!(
            "{} after {}",
            exit_label(end.exit_code),
            format_duration(Duration::from_millis(end.duration_ms))
        ),
        None if run.is_running => "still running when this page was made".to_owned(),
        None => KILLED.to_owned(),
    };
    let started = format_time(run.started_ms);
    visible_text(&format!(
        "{started}: run{input} with {}: {end}",
        run.session.tools.path
    ))
}

/// Returns the totals, in the words of the summary of a run.
fn summary(timeline: &LogTimeline) -> String {
    let calls = timeline.calls.iter();
    let roots: Vec<_> = calls.filter(|call| call.parent.is_none()).collect();
    let of_agents = timeline.calls.len() - roots.len();
    let mut parts = vec![calls_label(roots.len(), of_agents)];
    let mut outcomes = OutcomeTally::default();
    for call in &timeline.calls {
        let end = call
            .end
            .as_ref()
            .filter(|_| call.outcome != OutcomeKind::Unfinished);
        let status = match end {
            // One settled call isn't counted again as often as it is answered from memory.
            Some(end) if end.is_from_memory => "from memory".into(),
            Some(end) => end.status.clone(),
            None => timeline.summary(call).into(),
        };
        outcomes.add(call.outcome, status);
    }
    parts.append(&mut outcomes.labels());
    let retried = timeline.calls.iter().filter(|call| call.was_retried());
    let retried = retried.count();
    parts.extend((retried > 0).then(|| format!("{retried} retried")));
    let serial: u64 = roots
        .iter()
        .filter_map(|call| timeline.duration_of(call))
        .sum();
    if roots.len() > 1 {
        let serial = format_duration(Duration::from_millis(serial));
        parts.push(format!("{serial} if run one after another"));
    }
    visible_text(&parts.join(" · "))
}

fn filter_of(timeline: &LogTimeline, states: &BTreeSet<StateLook>) -> Markup {
    let tools = timeline.calls.iter().map(|call| call.tool_name.as_str());
    let states = states.iter().map(|state| state.word);
    filter_form(tools, states.chain(["retried"]))
}

/// Explains the marks of the states that the page has, and what the parts of a bar mean.
fn legend(timeline: &LogTimeline, states: &BTreeSet<StateLook>, shares_axis: bool) -> Markup {
    let bar = |state: &str, class: &str, meaning: &str| {
        html! { span class=(state) { svg aria-hidden="true" { rect class=(class) width="100%" {} } " " (meaning) } }
    };
    let has = |class: &str| states.iter().any(|state| state.class == class);
    let any = |has: &dyn Fn(&TimelineCall) -> bool| timeline.calls.iter().any(has);
    let has_mark = |name| any(&|call| mark(call, timeline) == Some(name));
    html! {
        p.legend {
            @for state in states {
                span class=(state.class) { span.state { (state.mark) " " (state.word) } (state.meaning) }
            }
        }
        p.legend {
            (bar("", "wait", "waited"))
            @if has("ok") { (bar("ok", "run", "ran")) }
            @if has("failed") { (bar("failed", "run", "ran and failed")) }
            @if has("running") { (bar("running", "run", "still ran")) }
            @if any(&TimelineCall::was_retried) { (bar("", "retried", "attempt that was retried (↻2: two attempts)")) }
            @if has("doubt") || has("unfinished") || any(&TimelineCall::was_settled) {
                (bar("doubt", "run", "in doubt or without an end"))
            }
            @if has_mark("recalled") { (bar("", "recalled", "answered from memory")) }
            @if has_mark("never") { (bar("", "never", "never ran")) }
            @if any(&|call| call.effect == Some(Effect::Write)) {
                span { span.effect { (Effect::Write.verb()) } " changes something, and runs once" }
            }
            span { "the calls of a batch may run at the same time" }
            @if !shares_axis { span { "the bars of each turn begin when it does" } }
        }
    }
}

/// Shows the calls of a group, on the common axis or one of their own.
fn group_section(group: &CallGroup, timeline: &LogTimeline, axis: Option<&TimeAxis>) -> Markup {
    let calls = || group.calls.iter().map(|index| &timeline.calls[*index]);
    let own_axis = TimeAxis::new(calls().map(|call| (call.requested_ms, timeline.end_of(call))));
    let begin = calls().map(|call| call.requested_ms).min();
    let end = calls().map(|call| timeline.end_of(call)).max();
    let took = format_ms(
        end.unwrap_or_default()
            .saturating_sub(begin.unwrap_or_default()),
    );
    let axis = axis.unwrap_or(&own_axis);
    html! {
        section {
            h2.turn {
                (group.title)
                span.took { " · " (took) }
                @if !group.troubles.is_empty() { span.troubles { " · " (group.troubles) } }
            }
            @for chunk in group.calls.chunks(CHUNK_ROWS) {
                ol.lazy[chunk.len() == CHUNK_ROWS] {
                    @for index in chunk {
                        (call_row(&timeline.calls[*index], &group.placement(*index), timeline, axis))
                    }
                }
            }
        }
    }
}

// What the page shows of a call when it is pointed at, as JSON for its script.

/// Returns the details of all calls by the number in the `id` of their row.
fn calls_json(timeline: &LogTimeline) -> String {
    let limit = text_limit(timeline.calls.len());
    let data = timeline
        .calls
        .iter()
        .map(|call| (call.line, call_data(call, timeline, limit)));
    expect_json(serde_json::to_string(&data.collect::<BTreeMap<_, _>>()))
}

fn call_data<'a>(call: &'a TimelineCall, timeline: &LogTimeline, limit: usize) -> CallDetails<'a> {
    let mut rows = vec![
        ("call", place(call, timeline)),
        ("end", end_facts(call, timeline)),
    ];
    for (number, attempt) in call.attempts.iter().enumerate() {
        rows.extend(attempt.failure.as_ref().map(|(status, ended)| {
            let took = format_ms(ended.saturating_sub(attempt.started_ms));
            let text = format!("{}: {} after {took}", number + 1, status.label());
            ("attempt", text)
        }));
    }
    rows.extend(call.approval.clone().map(|approval| ("approval", approval)));
    let more = "`toolq log show` has more";
    rows.push(("input", cut_text(&call.input, limit, more)));
    let result = call.end.as_ref();
    rows.extend(result.map(|end| ("result", cut_text(&end.output, limit, more))));
    CallDetails::new(&call.tool_name, timeline.state(call), rows).retried(call.was_retried())
}

/// Returns which call it is, and what decided when it ran.
fn place(call: &TimelineCall, timeline: &LogTimeline) -> String {
    let batch = call
        .batch
        .map_or_else(String::new, |batch| format!(", batch {batch}"));
    // An agent counts its own turns.
    let agent = call.parent.map(|agent| &timeline.calls[agent]);
    let agent = agent.map_or_else(String::new, |agent| {
        format!("in {} ({}), its ", agent.tool_name, agent.tool_use_id)
    });
    // As everywhere, the turns of an agent count from 1: so does its limit.
    let turn = call.turn + usize::from(call.parent.is_some());
    let place = format!("{agent}turn {turn}, position {}{batch}", call.position);
    let safety = call.safety.clone();
    let effect = call.effect.map(|effect| effect.verb().to_owned());
    let parts = [Some(call.tool_use_id.clone()), Some(place), effect, safety];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Returns how it ended, how long that took, and where the log says so.
fn end_facts(call: &TimelineCall, timeline: &LogTimeline) -> String {
    let end = call.end.as_ref();
    let mut parts = vec![end.map_or_else(
        || timeline.summary(call).to_owned(),
        |end| end.label.clone(),
    )];
    let took = timeline
        .took(call)
        .filter(|_| end.is_none() || call.was_settled());
    parts.extend(took.map(|took| format!("after {took}")));
    if let Some(started) = call.started_ms() {
        let waited = started.saturating_sub(call.requested_ms);
        parts.push(format!("waited {}", format_ms(waited)));
    }
    parts.push(match end {
        Some(end) => format!("log lines {} to {}", call.line, end.line),
        None => format!("log line {}", call.line),
    });
    parts.join(" · ")
}

fn format_ms(ms: u64) -> String {
    format_duration(Duration::from_millis(ms))
}

// The row of a call: its state, its name, the beginning of its input, and its bar.

/// The narrowest bar that can be seen and pointed at, in percent of the axis.
const MIN_BAR_PERCENT: f64 = 0.35;

/// Returns the row of a call.
fn call_row(
    call: &TimelineCall,
    placement: &RowPlacement,
    timeline: &LogTimeline,
    axis: &TimeAxis,
) -> Markup {
    let anchor = format!("call-{}", call.line);
    let took = timeline.took(call);
    let state = StateLook::of(call, timeline);
    let attempts = if call.was_retried() {
        format!(" ↻{}", call.attempts.len())
    } else {
        String::new()
    };
    html! {
        li id=(anchor) class=(row_class(state, placement)) data-batch=[&placement.heading] data-tool-use-id=(visible_text(&call.tool_use_id)) {
            a href=(format!("#{anchor}")) {
                span.state { (state.mark) " " (visible_text(timeline.summary(call))) (attempts) }
                span.name { (visible_text(&call.tool_name)) }
                span.input {
                    @if call.effect == Some(Effect::Write) { span.effect { (Effect::Write.verb()) } " " }
                    (input_beginning(&call.input))
                }
                span.took { (took.unwrap_or_default()) }
                (bar(call, timeline, axis))
            }
        }
    }
}

fn row_class(state: StateLook, placement: &RowPlacement) -> String {
    let batch = if placement.begins { " batch" } else { "" };
    format!("{} depth{}{batch}", state.class, placement.depth)
}

/// Returns a bar: a thin line while the call waited, a box for each attempt.
fn bar(call: &TimelineCall, timeline: &LogTimeline, axis: &TimeAxis) -> Markup {
    let end = timeline.end_of(call);
    let started = call.started_ms().unwrap_or(end);
    let part = |class: &str, from: u64, to: u64| {
        let start = axis.position(from);
        let width = (axis.position(to) - start).max(MIN_BAR_PERCENT);
        let start = start.min(100.0 - width);
        html! { rect class=(class) x=(format!("{start:.2}%")) width=(format!("{width:.2}%")) {} }
    };
    let attempts = call.attempts.iter().map(|attempt| match &attempt.failure {
        Some((_, ended)) => part("retried", attempt.started_ms, *ended),
        None if call.was_settled() => part("doubt", attempt.started_ms, end),
        None => part("run", attempt.started_ms, end),
    });
    html! {
        svg aria-hidden="true" {
            @if started > call.requested_ms { (part("wait", call.requested_ms, started)) }
            @for attempt in attempts { (attempt) }
            @if let Some(mark) = mark(call, timeline) { rect.point.(mark) x=(format!("{:.2}%", axis.position(end))) width="8" {} }
        }
    }
}

/// Returns what stands for a call that made no attempt in its run. In doubt, an earlier run may have made one.
fn mark(call: &TimelineCall, timeline: &LogTimeline) -> Option<&'static str> {
    let is_from_memory = call.end.as_ref().is_some_and(|end| end.is_from_memory);
    match call.outcome {
        _ if !call.attempts.is_empty() || timeline.is_open(call) => None,
        OutcomeKind::InDoubt => Some("run"),
        _ if is_from_memory => Some("recalled"),
        _ => Some("never"),
    }
}

/// How a state looks. Its mark tells it apart at a glance; the word beside it says the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StateLook {
    /// First, so that a legend has the states in the usual order.
    outcome: OutcomeKind,
    word: &'static str,
    class: &'static str,
    mark: &'static str,
    meaning: &'static str,
}

impl StateLook {
    fn of(call: &TimelineCall, timeline: &LogTimeline) -> Self {
        let word = timeline.state(call);
        let (class, mark, meaning) = match call.outcome {
            OutcomeKind::Ok => (word, "✓", "succeeded"),
            OutcomeKind::Failed => (word, "✕", "did not succeed"),
            OutcomeKind::Rejected => (word, "⊘", "could not run as it was requested"),
            OutcomeKind::Skipped => (word, "◇", "was answered without running"),
            OutcomeKind::InDoubt => ("doubt", "?", "may have been done or not"),
            OutcomeKind::Unfinished if timeline.is_open(call) => {
                (word, "…", "when this page was made")
            }
            OutcomeKind::Unfinished => (word, "…", "has no end in the log"),
        };
        Self {
            outcome: call.outcome,
            word,
            class,
            mark,
            meaning,
        }
    }
}
