//! The page of a session log: the calls of a session log as bars, by turn and batch.

mod call_data;
mod call_row;
mod groups;

use std::time::Duration;

use maud::{Markup, html};

use crate::log_view::format_time;
use crate::pages::axis_row::axis_row;
use crate::pages::bar_patterns::bar_patterns;
use crate::pages::call_details::details_panel;
use crate::pages::filter_form::filter_form;
use crate::pages::frame::{CHUNK_ROWS, Page};
use crate::pages::time_axis::TimeAxis;
use crate::pages::timeline::call_data::calls_json;
use crate::pages::timeline::call_row::{call_row, state_class, state_mark};
use crate::pages::timeline::groups::{CallGroup, group_calls};
use crate::pages::visible_text::visible_text;
use crate::terminal::{OutcomeTally, calls_label};
use crate::timeline::{LogTimeline, LoggedRun};
use toolq_core::text::format_duration;
use toolq_core::types::OutcomeKind;

/// Returns the page for a log that was read from `path`. A browser loads it again after `reload_after` seconds.
pub(crate) fn timeline_page(
    timeline: &LogTimeline,
    path: &str,
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
    let body = html! {
        (bar_patterns())
        header {
            h1 { (title) }
            p.path { (visible_text(path)) }
            @for run in &timeline.runs { p { (run_line(run)) } }
            p { (summary(timeline)) }
            (filter_of(timeline))
        }
        main {
            (legend(timeline))
            (axis_row(&axis, true))
            @for group in group_calls(timeline) { (group_section(&group, timeline, &axis)) }
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
            "exit {} after {}",
            end.exit_code,
            format_duration(Duration::from_millis(end.duration_ms))
        ),
        None if run.session.process().has_exited() => "killed: no end in the log".to_owned(),
        None => "still running when this page was made".to_owned(),
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
        let status = end.map_or_else(|| call.outcome.label().into(), |end| end.status.clone());
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
    let serial = format_duration(Duration::from_millis(serial));
    parts.push(format!("{serial} if run one after another"));
    visible_text(&parts.join(" · "))
}

fn filter_of(timeline: &LogTimeline) -> Markup {
    let tools = timeline.calls.iter().map(|call| call.tool_name.as_str());
    let has = |outcome: &OutcomeKind| timeline.calls.iter().any(|call| call.outcome == *outcome);
    let states = OutcomeKind::ALL
        .into_iter()
        .filter(has)
        .map(OutcomeKind::label);
    filter_form(tools, states.chain(["retried"]))
}

/// Explains the marks of the states that the page has, and what the parts of a bar mean.
fn legend(timeline: &LogTimeline) -> Markup {
    let bar = |state: &str, class: &str, meaning: &str| {
        html! { span class=(state) { svg aria-hidden="true" { rect class=(class) width="100%" {} } " " (meaning) } }
    };
    let has = |kind: &OutcomeKind| timeline.calls.iter().any(|call| call.outcome == *kind);
    let kinds = OutcomeKind::ALL.into_iter().filter(has);
    html! {
        p.legend {
            @for kind in kinds {
                span class=(state_class(kind)) { span.state { (state_mark(kind)) " " (kind.label()) } (meaning(kind)) }
            }
        }
        p.legend {
            (bar("", "wait", "waited"))
            (bar("ok", "run", "ran"))
            (bar("failed", "run", "ran and failed"))
            (bar("", "retried", "attempt that was retried (↻2: two attempts)"))
            (bar("doubt", "run", "in doubt or without an end"))
            (bar("", "never", "never ran"))
            span { "the calls of a batch may run at the same time" }
        }
    }
}

/// Says what the word for a state means.
fn meaning(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Ok => "succeeded",
        OutcomeKind::Failed => "did not succeed",
        OutcomeKind::Rejected => "could not run as it was requested",
        OutcomeKind::Skipped => "was answered without running",
        OutcomeKind::InDoubt => "may have been done or not",
        OutcomeKind::Unfinished => "has no end in the log",
    }
}

fn group_section(group: &CallGroup, timeline: &LogTimeline, axis: &TimeAxis) -> Markup {
    html! {
        section {
            h2 { (group.title) }
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
