//! The row of a call: its state, its name, the beginning of its input, and its bar.

use std::time::Duration;

use maud::{Markup, html};

use crate::pages::call_details::input_beginning;
use crate::pages::time_axis::TimeAxis;
use crate::pages::timeline::groups::RowPlacement;
use crate::pages::visible_text::visible_text;
use crate::timeline::{LogTimeline, TimelineCall};
use toolq_core::text::format_duration;
use toolq_core::types::OutcomeKind;

/// The narrowest bar that can be seen and pointed at, in percent of the axis.
const MIN_BAR_PERCENT: f64 = 0.35;

/// Returns the row of a call.
pub(super) fn call_row(
    call: &TimelineCall,
    placement: &RowPlacement,
    timeline: &LogTimeline,
    axis: &TimeAxis,
) -> Markup {
    let anchor = format!("call-{}", call.line);
    let took = timeline.duration_of(call).map(Duration::from_millis);
    let took = took.map(format_duration);
    let attempts = if call.was_retried() {
        format!(" ↻{}", call.attempts.len())
    } else {
        String::new()
    };
    let end = call.end.as_ref();
    let summary = end.map_or(call.outcome.label(), |end| end.summary.as_str());
    html! {
        li id=(anchor) class=(row_class(call, placement)) data-batch=[&placement.heading] data-tool-use-id=(visible_text(&call.tool_use_id)) {
            a href=(format!("#{anchor}")) {
                span.state { (state_mark(call.outcome)) " " (visible_text(summary)) (attempts) }
                span.name { (visible_text(&call.tool_name)) }
                span.input { (input_beginning(&call.input)) }
                span.took { (took.unwrap_or_default()) }
                (bar(call, timeline, axis))
            }
        }
    }
}

fn row_class(call: &TimelineCall, placement: &RowPlacement) -> String {
    let begins = placement.heading.as_ref();
    let batch = begins.map_or("", |_| " batch");
    let state = state_class(call.outcome);
    format!("{state} depth{}{batch}", placement.depth)
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
        None => part("run", attempt.started_ms, end),
    });
    html! {
        svg aria-hidden="true" {
            @if started > call.requested_ms { (part("wait", call.requested_ms, started)) }
            @for attempt in attempts { (attempt) }
            @if call.attempts.is_empty() { rect.never x=(format!("{:.2}%", axis.position(end))) width="8" {} }
        }
    }
}

pub(super) fn state_class(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::InDoubt => "doubt",
        outcome => outcome.label(),
    }
}

/// Returns a mark that tells states apart at a glance; the words beside it say the same.
pub(super) fn state_mark(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Ok => "✓",
        OutcomeKind::Failed => "✕",
        OutcomeKind::Rejected => "⊘",
        OutcomeKind::Skipped => "◇",
        OutcomeKind::InDoubt => "?",
        OutcomeKind::Unfinished => "…",
    }
}
