//! The title and the last line of a session, and the origin of its turns.

use std::sync::Arc;
use std::time::Duration;

use crate::terminal::{OutcomeTally, calls_label};
use toolq_core::text::{escape, format_duration, format_time};
use toolq_log::records::{SessionEndRecord, SessionRecord, TurnRecord};

/// Formats the title: `session of 2026-01-01 12:00:00 UTC with tools.yaml (toolq 0.1.0)`. `timestamp` is in
/// milliseconds since 1970.
pub(crate) fn session_title(session: &SessionRecord, timestamp: u64) -> String {
    format!(
        "session of {} with {} (toolq {})",
        format_time(timestamp),
        escape(&session.tools.path),
        escape(&session.toolq)
    )
}

/// Formats where a turn comes from: `msg_01, claude-sonnet-4-5, from response.json`.
pub(crate) fn turn_origin_label(turn: &TurnRecord) -> Option<Arc<str>> {
    let input = turn.input.as_deref().map(|path| match path {
        "-" => "from stdin".to_owned(),
        path => format!("from {path}"),
    });
    let parts = [turn.message_id.clone(), turn.model.clone(), input];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| escape(&parts.join(", ")).into())
}

/// Formats the end: `exit 0 after 44ms: 8 calls, and 4 of agents (1 from memory): 10 ok, 1 failed`. `outcomes` says how the calls of
/// the session ended.
pub(crate) fn session_end_label(end: &SessionEndRecord, outcomes: &OutcomeTally) -> String {
    let took = format_duration(Duration::from_millis(end.duration_ms));
    let from_log = match end.recalled {
        0 => String::new(),
        recalled => format!(" ({recalled} from memory)"),
    };
    // A resumed run records only calls that weren't in the log, so `calls` alone may be too low.
    let all = end.calls.max(end.answered);
    let calls = calls_label(all.saturating_sub(end.agent_calls), end.agent_calls);
    let outcomes = match outcomes.labels().join(", ") {
        outcomes if outcomes.is_empty() => outcomes,
        outcomes => format!(": {outcomes}"),
    };
    let code = end.exit_code;
    format!("exit {code} after {took}: {calls}{from_log}{outcomes}")
}
