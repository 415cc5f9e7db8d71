//! Formats the records of servers, a line for each.

use std::fmt::Write as _;
use std::time::Duration;

use toolq_core::text::{format_count, format_duration};
use toolq_log::records::{ListRecord, ServerEndRecord, ServerStartRecord};

/// Formats a `list_end`: `server notes announced 3 tools (12ms)`.
pub(crate) fn list_end_label(list: &ListRecord<'_>) -> String {
    let server = &list.server;
    let took = format_duration(Duration::from_millis(list.duration_ms.unwrap_or(0)));
    match (&list.error, list.tools) {
        (Some(why), _) => {
            format!("server {server} couldn't be asked for its tools ({took}): {why}")
        }
        (None, Some(tools)) => {
            let tools = format_count(tools as u64, "tool");
            format!("server {server} announced {tools} ({took})")
        }
        (None, None) => format!("server {server} didn't announce its tools ({took})"),
    }
}

/// Formats a `server_start`: `server notes was ready after 12ms: notes 1.0, 2025-11-25 (legacy)`.
pub(crate) fn server_start_label(start: &ServerStartRecord<'_>) -> String {
    let server = &start.server;
    let again = if start.earlier_starts > 0 {
        " again"
    } else {
        ""
    };
    let Some(ready_ms) = start.ready_ms else {
        return format!("server {server} was started{again}");
    };
    let ready = format_duration(Duration::from_millis(ready_ms));
    let program = [&start.name, &start.version].map(|part| part.as_deref().unwrap_or_default());
    let program = program.join(" ");
    let protocol = start.protocol.as_deref().unwrap_or("unknown protocol");
    let era = start.era.as_deref().unwrap_or("unknown era");
    let who = [program.trim(), protocol].map(str::to_owned);
    let who: Vec<String> = who.into_iter().filter(|part| !part.is_empty()).collect();
    format!(
        "server {server} was ready{again} after {ready}: {} ({era})",
        who.join(", ")
    )
}

/// Formats a `server_end`: `server notes exited with code 3 after 2s and 4 calls`. `None` if the run needed it no more, and
/// there is nothing else to tell.
pub(crate) fn server_end_label(end: &ServerEndRecord<'_>) -> Option<String> {
    let strays = [
        (end.late_answers, "late answer"),
        (end.noise_lines, "noise line"),
    ];
    let strays = strays.into_iter().filter(|(count, _)| *count > 0);
    let strays: Vec<String> = strays
        .map(|(count, noun)| format_count(count, noun))
        .collect();
    if end.cause == "run_ended" && strays.is_empty() {
        return None;
    }
    let took = format_duration(Duration::from_millis(end.duration_ms));
    let calls = format_count(end.calls, "call");
    let mut text = format!("server {} ended after {took} and {calls}", end.server);
    if !strays.is_empty() {
        let _ = write!(text, ", with {}", strays.join(" and "));
    }
    if let Some(error) = &end.error {
        let _ = write!(text, ": {error}");
    }
    Some(text)
}
