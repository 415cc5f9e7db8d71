//! What the page shows of a call when it is pointed at, as JSON for its script.

use std::time::Duration;

use serde::Serialize;

use crate::log_view::to_json;
use crate::pages::visible_text::visible_text;
use crate::timeline::{LogTimeline, LoggedCall};
use toolq_core::text::format_duration;

/// What all inputs and results of a page may take together, in bytes. Each keeps at least its beginning.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// What the input or the result of a call may always take, in bytes.
const MIN_TEXT_BYTES: usize = 400;

/// The details of a call: rows with a label and a text.
#[derive(Serialize)]
struct CallData<'a> {
    /// The state that the filter looks for.
    state: &'a str,
    retried: bool,
    tool: String,
    rows: Vec<(&'static str, String)>,
}

/// Returns the details of all calls by the number in the `id` of their row.
pub(super) fn calls_json(timeline: &LogTimeline) -> String {
    let limit = MAX_TEXT_BYTES / (2 * timeline.calls.len().max(1));
    let limit = limit.max(MIN_TEXT_BYTES);
    let data = timeline
        .calls
        .iter()
        .map(|call| (call.line, call_data(call, timeline, limit)));
    to_json(&data.collect::<std::collections::BTreeMap<_, _>>())
}

fn call_data<'a>(call: &'a LoggedCall, timeline: &LogTimeline, limit: usize) -> CallData<'a> {
    let mut rows = vec![("call", facts(call, timeline))];
    for (number, attempt) in call.attempts.iter().enumerate() {
        rows.extend(attempt.failure.as_ref().map(|(status, ended)| {
            let took = format_ms(ended.saturating_sub(attempt.started_ms));
            let text = format!("{}: {} after {took}", number + 1, status.label());
            ("attempt", text)
        }));
    }
    rows.extend(call.approval.clone().map(|approval| ("approval", approval)));
    rows.push(("input", cut(&call.input, limit)));
    rows.extend(
        call.end
            .as_ref()
            .map(|end| ("result", cut(&end.output, limit))),
    );
    CallData {
        state: call.outcome.label(),
        retried: call.was_retried(),
        tool: visible_text(&call.tool_name),
        rows: rows
            .into_iter()
            .map(|(label, text)| (label, visible_text(&text)))
            .collect(),
    }
}

/// Returns what else there is to say about a call, in one line.
fn facts(call: &LoggedCall, timeline: &LogTimeline) -> String {
    let end = call.end.as_ref();
    let state = end.map_or_else(|| call.outcome.label().to_owned(), |end| end.label.clone());
    let mut parts = vec![call.tool_use_id.clone(), state];
    if let Some(started) = call.started_ms() {
        let waited = started.saturating_sub(call.requested_ms);
        parts.push(format!("waited {}", format_ms(waited)));
    }
    let took = timeline.duration_of(call).map(format_ms);
    parts.extend(took.map(|took| format!("took {took}")));
    let batch = call
        .batch
        .map_or_else(String::new, |batch| format!(", batch {batch}"));
    parts.push(format!(
        "turn {}, position {}{batch}",
        call.turn, call.position
    ));
    parts.extend(
        call.safety_source
            .as_ref()
            .map(|source| format!("order decided by {source}")),
    );
    let last = end.map_or_else(String::new, |end| format!(" to {}", end.line));
    parts.push(format!("log line {}{last}", call.line));
    parts.join(" · ")
}

fn format_ms(ms: u64) -> String {
    format_duration(Duration::from_millis(ms))
}

fn cut(text: &str, limit: usize) -> String {
    let end = text.floor_char_boundary(limit);
    if end == text.len() {
        return text.to_owned();
    }
    format!("{}\n… cut; `toolq log show` has more", &text[..end])
}
