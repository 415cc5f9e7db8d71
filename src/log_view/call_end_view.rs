//! How a call ended, as `toolq log show` prints it.

use std::time::Duration;

use crate::log_view::preview::OutputPreview;
use toolq_core::text::{escape, format_bytes, format_duration};
use toolq_log::CallEvent;
use toolq_log::records::CallEndRecord;

/// How a call ended.
#[derive(Debug)]
pub(crate) struct CallEndView {
    pub(super) is_error: bool,
    pub(super) status: String,
    /// Why it failed, if the model read something else.
    pub(super) cause: Option<String>,
    /// Green for success, red for a failure, yellow if there is no result.
    pub(super) style: &'static str,
    pub(super) output: OutputPreview,
}

impl CallEndView {
    /// Returns `None` if the record doesn't end the call.
    pub(super) fn new(event: &CallEvent<'_>, output: OutputPreview) -> Option<Self> {
        let style = match event {
            CallEvent::Result(end) if end.is_error => "31",
            CallEvent::Result(_) => "32",
            CallEvent::Resolved(resolve) if resolve.done => "31",
            _ => "33",
        };
        Some(Self {
            is_error: event.is_error(),
            status: end_label(event)?,
            cause: match event {
                CallEvent::Result(end) | CallEvent::Skipped(end) | CallEvent::InDoubt(end) => {
                    hidden_cause(end, &output)
                }
                _ => None,
            },
            style,
            output,
        })
    }
}

/// Returns the cause of a failure that the result doesn't tell: `cause: password authentication failed`.
fn hidden_cause(end: &CallEndRecord<'_>, output: &OutputPreview) -> Option<String> {
    let message = end.error.as_ref()?.message.lines().next()?;
    let is_told = message == end.status.label() || output.shows(message);
    (!is_told).then(|| format!("cause: {message}"))
}

/// Formats how a call ended: `failed, exit 3, 12ms, 1.5 KiB, 2 attempts`. Returns `None` if the record doesn't end it.
pub(crate) fn end_label(event: &CallEvent<'_>) -> Option<String> {
    match event {
        CallEvent::Result(end) | CallEvent::Skipped(end) | CallEvent::InDoubt(end) => {
            Some(end_parts(end).join(", "))
        }
        CallEvent::Resolved(resolve) if resolve.done => Some("resolved".to_owned()),
        CallEvent::Resolved(_) => Some("resolved: not done; it will run on resume".to_owned()),
        CallEvent::Approved(_) | CallEvent::Started(_) | CallEvent::Probed(_) => None,
    }
}

fn end_parts(end: &CallEndRecord<'_>) -> Vec<String> {
    let mut parts = vec![escape(&end.status.label()).into_owned()];
    parts.extend(
        end.exit
            .exit
            .filter(|code| *code != 0)
            .map(|code| format!("exit {code}")),
    );
    parts.extend(end.exit.signal.map(|signal| format!("signal {signal}")));
    parts.extend(end.http_status.map(|status| format!("HTTP {status}")));
    if end.attempts > 0 {
        parts.push(format_duration(Duration::from_millis(end.duration_ms)));
    }
    parts.extend(end.bytes.filter(|bytes| *bytes > 0).map(format_bytes));
    parts.extend(
        end.cut_bytes
            .map(|cut| format!("{} cut", format_bytes(cut))),
    );
    if end.attempts > 1 {
        parts.push(format!("{} attempts", end.attempts));
    }
    parts
}
