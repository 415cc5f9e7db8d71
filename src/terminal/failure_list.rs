//! The failures of a run, for a summary without a display of progress.

use std::sync::Arc;
use std::time::Duration;

use crate::terminal::labels::CallLabels;
use crate::terminal::repeat_command::RepeatCommand;
use crate::terminal::{
    MAX_PIPED_SUBJECT_COLUMNS, call_path, failure_line, mask_and_escape, outcome_label,
    short_subject,
};
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::types::{CallRef, CallRequest, EmitError, Event, EventSink, Outcome, OutcomeKind};

/// Maximum number of failures that are kept.
const MAX_FAILURES: usize = 1_000;

/// Collects the failures of a run.
pub struct FailureList {
    mask: Arc<Mask>,
    repeat: RepeatCommand,
    failures: Vec<CallFailure>,
    /// Number of failures that aren't kept.
    omitted: usize,
}

/// A failure, safe to show.
#[derive(Debug)]
pub struct CallFailure {
    /// The word for how the call ended.
    pub kind: OutcomeKind,
    /// The call, how it ended, and why.
    pub line: String,
    /// The command line that repeats it by hand, and what to do before.
    pub repeat: Option<String>,
}

impl FailureList {
    pub(crate) fn new(mask: Arc<Mask>, repeat: RepeatCommand) -> Self {
        Self {
            mask,
            repeat,
            failures: Vec::new(),
            omitted: 0,
        }
    }

    /// Returns the first failures, and how many others there were.
    pub fn failures(&self) -> (&[CallFailure], usize) {
        (&self.failures, self.omitted)
    }

    fn describe(
        &self,
        call: &CallRef,
        request: CallRequest<'_>,
        outcome: &Outcome,
        duration: Duration,
    ) -> CallFailure {
        let mask = &self.mask;
        let labels = CallLabels::new(request);
        let name = call_path(call, &labels.name);
        let repeat = self.repeat.repeat_of(request, mask);
        CallFailure {
            kind: outcome.kind(),
            line: failure_line(
                &mask_and_escape(&name, mask),
                &short_subject(&labels, mask, MAX_PIPED_SUBJECT_COLUMNS),
                &outcome_label::failure_label(outcome, duration),
                failure_cause(outcome).as_deref(),
                mask,
            ),
            repeat: repeat.and_then(|repeat| repeat.line_after(outcome)),
        }
    }
}

impl EventSink for FailureList {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            // A result from the log was reported by the run that made it.
            if let Event::Finished {
                call,
                request,
                outcome,
                duration,
                ..
            } = event
                && outcome.is_error()
                && !outcome.is_restored()
            {
                if self.failures.len() == MAX_FAILURES {
                    self.omitted += 1;
                } else {
                    let failure = self.describe(call, *request, outcome, *duration);
                    self.failures.push(failure);
                }
            }
        }
        Ok(())
    }
}
