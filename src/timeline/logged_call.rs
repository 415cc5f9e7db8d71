//! A call in a session log, with the times at which things happened to it.

use crate::log_view::end_label;
use toolq_core::types::Status;
use toolq_log::{CallEvent, CallLog};

/// A call, as its records tell it. Times are in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct LoggedCall {
    /// Line of its `tool_call` in the log, counted from 1.
    pub(crate) line: u64,
    pub(crate) tool_use_id: String,
    pub(crate) tool_name: String,
    /// Its turn: of the input, or of the agent that made it.
    pub(crate) turn: usize,
    pub(crate) position: usize,
    /// `None` for a call that wasn't going to run.
    pub(crate) batch: Option<usize>,
    /// What decided whether it may run together with others.
    pub(crate) safety_source: Option<String>,
    /// The agent's call that made it, as an index into the calls of the log.
    pub(crate) parent: Option<usize>,
    /// The input as JSON, or in parentheses why it can't be shown.
    pub(crate) input: String,
    pub(crate) requested_ms: u64,
    /// Who approved or denied it, and why.
    pub(crate) approval: Option<String>,
    pub(crate) attempts: Vec<LoggedAttempt>,
    pub(crate) outcome: CallOutcome,
    pub(crate) end: Option<LoggedEnd>,
    pub(super) log: CallLog,
}

/// An attempt at a call.
#[derive(Debug)]
pub(crate) struct LoggedAttempt {
    pub(crate) started_ms: u64,
    /// How it failed and when, if another attempt followed.
    pub(crate) failure: Option<(Status, u64)>,
}

/// The end of a call.
#[derive(Debug)]
pub(crate) struct LoggedEnd {
    /// Line of the record in the log, counted from 1.
    pub(crate) line: u64,
    pub(crate) at_ms: u64,
    /// How long the call took by the engine's clock, from its first start. `None` if that isn't on record.
    pub(crate) duration_ms: Option<u64>,
    /// How it ended: `failed, exit 3, 12ms`.
    pub(crate) label: String,
    /// What the model read, or in parentheses why it can't be shown.
    pub(crate) output: String,
}

/// How a call ended, as pages and traces tell calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallOutcome {
    Ok,
    Failed,
    /// It was rejected before it could start.
    Rejected,
    /// It was answered without running.
    Skipped,
    InDoubt,
    /// It has no end in the log.
    Unfinished,
}

impl CallOutcome {
    /// All outcomes, in the order in which they are listed.
    pub(crate) const ALL: [Self; 6] = [
        Self::Ok,
        Self::Failed,
        Self::Rejected,
        Self::Skipped,
        Self::InDoubt,
        Self::Unfinished,
    ];

    /// Returns the words for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Skipped => "skipped",
            Self::InDoubt => "in doubt",
            Self::Unfinished => "unfinished",
        }
    }
}

impl LoggedCall {
    /// Applies a record of the call, written at `at_ms` to the `line` of the log. `output` is its content.
    pub(super) fn apply(&mut self, event: &CallEvent<'_>, at_ms: u64, line: u64, output: String) {
        // `toolq log verify` is what reports a record that can't follow the others.
        let _ = self.log.apply(event);
        match event {
            CallEvent::Started(start) => {
                if let Some((last, failure)) = self.attempts.last_mut().zip(start.after.as_ref()) {
                    let ended_ms = at_ms.saturating_sub(failure.wait_ms).max(last.started_ms);
                    last.failure = Some((failure.status.clone(), ended_ms));
                }
                self.attempts.push(LoggedAttempt {
                    started_ms: at_ms,
                    failure: None,
                });
                (self.end, self.outcome) = (None, CallOutcome::Unfinished);
            }
            CallEvent::Result(_)
            | CallEvent::Skipped(_)
            | CallEvent::InDoubt(_)
            | CallEvent::Resolved(_) => {
                let before = self.end.as_ref().and_then(|end| end.duration_ms);
                self.outcome = CallOutcome::of_end(event);
                self.end = end_label(event).map(|label| LoggedEnd {
                    line,
                    at_ms: at_ms.max(self.requested_ms),
                    // The time until somebody resolved a call isn't time that it took.
                    duration_ms: recorded_duration(event).or(before),
                    label,
                    output,
                });
            }
            CallEvent::Approved(approval) => {
                let by = format!("{} by {}", approval.decision, approval.by);
                self.approval = Some(match &approval.reason {
                    Some(reason) => format!("{by}: {reason}"),
                    None => by,
                });
            }
            CallEvent::Probed(_) => {}
        }
    }

    /// Returns when it began to run, if it did.
    pub(crate) fn started_ms(&self) -> Option<u64> {
        self.attempts.first().map(|attempt| attempt.started_ms)
    }

    /// Returns whether more than one attempt was started.
    pub(crate) fn was_retried(&self) -> bool {
        self.attempts.len() > 1
    }
}

fn recorded_duration(event: &CallEvent<'_>) -> Option<u64> {
    match event {
        CallEvent::Result(end) | CallEvent::Skipped(end) | CallEvent::InDoubt(end) => {
            Some(end.duration_ms)
        }
        _ => None,
    }
}

impl CallOutcome {
    fn of_end(event: &CallEvent<'_>) -> Self {
        match event {
            CallEvent::Result(end) if end.status.is_rejected() => Self::Rejected,
            CallEvent::Skipped(_) => Self::Skipped,
            CallEvent::InDoubt(_) => Self::InDoubt,
            CallEvent::Resolved(resolve) if !resolve.done => Self::Unfinished,
            event if event.is_error() => Self::Failed,
            _ => Self::Ok,
        }
    }
}
