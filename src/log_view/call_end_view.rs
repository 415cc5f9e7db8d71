//! How a call ended, as `toolq log show` prints it.

use std::time::Duration;

use crate::log_view::preview::OutputPreview;
use crate::terminal::kind_style;
use toolq_core::text::{escape, format_bytes, format_duration};
use toolq_core::types::OutcomeKind;
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
            CallEvent::Resolved(resolve) if resolve.done => "31",
            event => kind_style(event.outcome_kind()),
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

/// Formats how a call ended: `failed: exit 3, 12ms, 1.5 KiB, 2 attempts`. Returns `None` if the record doesn't end it.
pub(crate) fn end_label(event: &CallEvent<'_>) -> Option<String> {
    match event {
        CallEvent::Result(end) | CallEvent::Skipped(end) | CallEvent::InDoubt(end) => {
            Some(end_parts(end, event.outcome_kind()).join(", "))
        }
        CallEvent::Resolved(resolve) if resolve.done => Some("resolved".to_owned()),
        CallEvent::Resolved(_) => {
            Some("resolved: not done; it runs when it is asked for again".to_owned())
        }
        CallEvent::Approved(_) | CallEvent::Started(_) | CallEvent::Probed(_) => None,
    }
}

/// Formats how a call ended in a few words: `failed: exit 3`, `rejected: unknown tool`.
pub(crate) fn end_summary(event: &CallEvent<'_>) -> String {
    let kind = event.outcome_kind();
    match event {
        CallEvent::Result(end) | CallEvent::Skipped(end) | CallEvent::InDoubt(end) => {
            summary_of(end, kind)
        }
        _ => kind.label().to_owned(),
    }
}

fn summary_of(end: &CallEndRecord<'_>, kind: OutcomeKind) -> String {
    let status = Some(end.status.label()).filter(|status| status != kind.label());
    let exit = end.exit.exit.filter(|code| *code != 0);
    let causes = [
        status,
        exit.map(|code| format!("exit {code}")),
        end.exit.signal.map(|signal| format!("signal {signal}")),
        end.http_status.map(|status| format!("HTTP {status}")),
    ];
    let causes: Vec<String> = causes.into_iter().flatten().collect();
    escape(&kind.with_cause(&causes.join(", "))).into_owned()
}

/// Returns how it ended, then how long it took and how much it wrote.
fn end_parts(end: &CallEndRecord<'_>, kind: OutcomeKind) -> Vec<String> {
    let mut parts = vec![summary_of(end, kind)];
    parts.extend(end.memory.as_ref().map(|_| "from memory".to_owned()));
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
