//! The failures of a run, for a summary without a display of progress.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::terminal::labels::CallLabels;
use crate::terminal::repeat_command::{CallRepeat, RepeatCommand};
use crate::terminal::{
    MAX_PIPED_SUBJECT_COLUMNS, RowKey, call_path, failure_line, mask_and_escape, outcome_label,
    row_key, short_subject,
};
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::types::{CallRef, CheckedCall, EmitError, Event, EventSink, Outcome, OutcomeKind};

/// Maximum number of failures that are kept.
const MAX_FAILURES: usize = 1_000;

/// Collects the failures of a run.
pub struct FailureList {
    mask: Arc<Mask>,
    repeat: RepeatCommand,
    /// Unfinished calls.
    calls: HashMap<RowKey, UnfinishedCall>,
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

struct UnfinishedCall {
    name: String,
    subject: String,
    repeat: Option<CallRepeat>,
}

impl FailureList {
    pub(crate) fn new(mask: Arc<Mask>, repeat: RepeatCommand) -> Self {
        Self {
            mask,
            repeat,
            calls: HashMap::new(),
            failures: Vec::new(),
            omitted: 0,
        }
    }

    /// Returns the first failures, and how many others there were.
    pub fn failures(&self) -> (&[CallFailure], usize) {
        (&self.failures, self.omitted)
    }

    fn on_queued(&mut self, checked: &CheckedCall) {
        let labels = CallLabels::new(checked);
        let call = CallRef::new(&checked.call, None);
        let unfinished = UnfinishedCall {
            name: mask_and_escape(&call_path(&call, &labels.name), &self.mask),
            subject: short_subject(&labels, &self.mask, MAX_PIPED_SUBJECT_COLUMNS),
            repeat: self.repeat.repeat_of(checked, &self.mask),
        };
        self.calls.insert(row_key(&call), unfinished);
    }

    fn on_finished(&mut self, call: &CallRef, outcome: &Outcome, duration: Duration) {
        let known = self.calls.remove(&row_key(call));
        // A result from the log was reported by the run that made it.
        let is_new = outcome.is_error() && !outcome.is_restored();
        let Some(known) = known.filter(|_| is_new) else {
            return;
        };
        if self.failures.len() == MAX_FAILURES {
            self.omitted += 1;
            return;
        }
        let label = outcome_label::failure_label(outcome, duration);
        let cause = failure_cause(outcome);
        self.failures.push(CallFailure {
            kind: outcome.kind(),
            line: failure_line(
                &known.name,
                &known.subject,
                &label,
                cause.as_deref(),
                &self.mask,
            ),
            repeat: known.repeat.and_then(|repeat| repeat.line_after(outcome)),
        });
    }
}

impl EventSink for FailureList {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            match event {
                Event::Queued { checked, .. } => self.on_queued(checked),
                Event::Finished {
                    call,
                    outcome,
                    duration,
                    ..
                } => self.on_finished(call, outcome, *duration),
                _ => {}
            }
        }
        Ok(())
    }
}
