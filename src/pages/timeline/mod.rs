//! The page of `toolq log timeline`: the calls of a session log as bars, by turn and batch.

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
use crate::pages::timeline::call_row::call_row;
use crate::pages::timeline::groups::{CallGroup, group_calls};
use crate::pages::visible_text::visible_text;
use crate::timeline::{CallOutcome, LogTimeline, LoggedRun};
use toolq_core::text::{format_count, format_duration};

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
            (legend())
            (axis_row(&axis, true))
            @for group in group_calls(timeline) { (group_section(&group, timeline, &axis)) }
            p #none hidden { "No call matches the filter." }
        }
        (details_panel("its input and its result"))
        noscript { p { "The calls are listed below; their inputs and results need scripts." } }
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

fn summary(timeline: &LogTimeline) -> String {
    let mut parts = vec![format_count(timeline.calls.len() as u64, "call")];
    for outcome in CallOutcome::ALL {
        let count = timeline
            .calls
            .iter()
            .filter(|call| call.outcome == outcome)
            .count();
        parts.extend((count > 0).then(|| format!("{count} {}", outcome.label())));
    }
    let retried = timeline
        .calls
        .iter()
        .filter(|call| call.was_retried())
        .count();
    parts.extend((retried > 0).then(|| format!("{retried} retried")));
    let roots = timeline.calls.iter().filter(|call| call.parent.is_none());
    let serial: u64 = roots.filter_map(|call| timeline.duration_of(call)).sum();
    parts.push(format!(
        "{} in series",
        format_duration(Duration::from_millis(serial))
    ));
    parts.join(" · ")
}

fn filter_of(timeline: &LogTimeline) -> Markup {
    let tools = timeline.calls.iter().map(|call| call.tool_name.as_str());
    let has = |outcome: &CallOutcome| timeline.calls.iter().any(|call| call.outcome == *outcome);
    let states = CallOutcome::ALL
        .into_iter()
        .filter(has)
        .map(CallOutcome::label);
    filter_form(tools, states.chain(["retried"]))
}

/// Explains what the parts of a bar mean.
fn legend() -> Markup {
    let sample = |state: &str, class: &str, meaning: &str| {
        html! { span class=(state) { svg aria-hidden="true" { rect class=(class) width="100%" {} } " " (meaning) } }
    };
    html! {
        p.legend {
            (sample("", "wait", "waited"))
            (sample("", "run", "ran"))
            (sample("failed", "run", "failed"))
            (sample("", "retried", "attempt that was retried (↻2: two attempts)"))
            (sample("doubt", "run", "in doubt or without an end"))
            (sample("", "never", "never ran"))
            span { "heavy rules separate batches: the calls of one may run at the same time" }
        }
    }
}

fn group_section(group: &CallGroup, timeline: &LogTimeline, axis: &TimeAxis) -> Markup {
    html! {
        section {
            h2 { (group.title) }
            @for chunk in group.calls.chunks(CHUNK_ROWS) {
                ol.lazy[chunk.len() == CHUNK_ROWS] {
                    @for index in chunk {
                        (call_row(&timeline.calls[*index], group.placement(*index), timeline, axis))
                    }
                }
            }
        }
    }
}
