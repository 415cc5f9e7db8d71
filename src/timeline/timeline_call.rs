//! A call in a session log, with the times at which things happened to it.

use crate::log_view::{end_label, end_summary};
use toolq_core::types::{OutcomeKind, Status};
use toolq_log::{CallEvent, CallLog};

/// A call, as its records tell it. Times are in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct TimelineCall {
    /// Line of its `tool_call` in the log, counted from 1.
    pub(crate) line: u64,
    pub(crate) tool_use_id: String,
    pub(crate) tool_name: String,
    /// The run that it belongs to, as an index into those of the log.
    pub(crate) run: usize,
    /// Its turn: of the input, or of the agent that made it.
    pub(crate) turn: usize,
    pub(crate) position: usize,
    /// `None` for a call that wasn't going to run.
    pub(crate) batch: Option<usize>,
    /// Whether it may run together with others, and what decided that: `parallel by effect`.
    pub(crate) safety: Option<String>,
    /// The agent's call that made it, as an index into the calls of the log.
    pub(crate) parent: Option<usize>,
    /// The input as JSON, or in parentheses why it can't be shown.
    pub(crate) input: String,
    pub(crate) requested_ms: u64,
    /// Who approved or denied it, and why.
    pub(crate) approval: Option<String>,
    pub(crate) attempts: Vec<TimelineAttempt>,
    pub(crate) outcome: OutcomeKind,
    pub(crate) end: Option<TimelineEnd>,
    pub(super) log: CallLog,
}

/// An attempt at a call.
#[derive(Debug)]
pub(crate) struct TimelineAttempt {
    pub(crate) started_ms: u64,
    /// How it failed and when, if another attempt followed.
    pub(crate) failure: Option<(Status, u64)>,
}

/// The place of a record in a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordPlace {
    /// Counted from 1.
    pub(super) line: u64,
    pub(super) at_ms: u64,
}

/// The end of a call.
#[derive(Debug)]
pub(crate) struct TimelineEnd {
    /// Line of the record in the log, counted from 1.
    pub(crate) line: u64,
    pub(crate) at_ms: u64,
    /// How long the call took by the engine's clock, from its first start. `None` if that isn't on record.
    pub(crate) duration_ms: Option<u64>,
    /// How it ended: `failed: exit 3, 12ms`.
    pub(crate) label: String,
    /// The same in a few words, for a row: `failed: exit 3`.
    pub(crate) summary: String,
    /// What the model read, or in parentheses why it can't be shown.
    pub(crate) output: String,
    pub(crate) status: Status,
}

impl TimelineCall {
    /// Applies a record of the call. `output` is its content.
    pub(super) fn apply(&mut self, event: &CallEvent<'_>, place: RecordPlace, output: String) {
        let RecordPlace { line, at_ms } = place;
        // `toolq log verify` is what reports a record that can't follow the others.
        let _ = self.log.apply(event);
        match event {
            CallEvent::Started(start) => {
                if let Some((last, failure)) = self.attempts.last_mut().zip(start.after.as_ref()) {
                    let ended_ms = at_ms.saturating_sub(failure.wait_ms).max(last.started_ms);
                    last.failure = Some((failure.status.clone(), ended_ms));
                }
                self.attempts.push(TimelineAttempt {
                    started_ms: at_ms,
                    failure: None,
                });
                (self.end, self.outcome) = (None, OutcomeKind::Unfinished);
            }
            CallEvent::Result(_)
            | CallEvent::Skipped(_)
            | CallEvent::InDoubt(_)
            | CallEvent::Resolved(_) => {
                let before = self.end.as_ref().and_then(|end| end.duration_ms);
                self.outcome = event.outcome_kind();
                self.end = end_label(event).map(|label| TimelineEnd {
                    line,
                    at_ms: at_ms.max(self.requested_ms),
                    // The time until a person resolved the call isn't part of its duration.
                    duration_ms: recorded_duration(event).or(before),
                    label,
                    summary: end_summary(event),
                    output,
                    status: status_of_end(event),
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

fn status_of_end(event: &CallEvent<'_>) -> Status {
    match event {
        CallEvent::Result(end) | CallEvent::Skipped(end) | CallEvent::InDoubt(end) => {
            end.status.clone()
        }
        _ => Status::Resolved,
    }
}
