//! What the page shows of a call when it is pointed at, as JSON for its script.

use std::time::Duration;

use crate::log_view::to_json;
use crate::pages::call_details::{CallDetails, cut_text, text_limit};
use crate::timeline::{LogTimeline, TimelineCall};
use toolq_core::text::format_duration;

/// Returns the details of all calls by the number in the `id` of their row.
pub(super) fn calls_json(timeline: &LogTimeline) -> String {
    let limit = text_limit(timeline.calls.len());
    let data = timeline
        .calls
        .iter()
        .map(|call| (call.line, call_data(call, timeline, limit)));
    to_json(&data.collect::<std::collections::BTreeMap<_, _>>())
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
    CallDetails::new(&call.tool_name, call.outcome.label(), rows).retried(call.was_retried())
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
    let place = format!(
        "{agent}turn {}, position {}{batch}",
        call.turn, call.position
    );
    let safety = call.safety.clone();
    let parts = [Some(call.tool_use_id.clone()), Some(place), safety];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Returns how it ended, how long that took, and where the log says so.
fn end_facts(call: &TimelineCall, timeline: &LogTimeline) -> String {
    let end = call.end.as_ref();
    let mut parts =
        vec![end.map_or_else(|| call.outcome.label().to_owned(), |end| end.label.clone())];
    let took = timeline.duration_of(call).filter(|_| end.is_none());
    parts.extend(took.map(|took| format!("after {}", format_ms(took))));
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
