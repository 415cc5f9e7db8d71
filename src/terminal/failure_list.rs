//! The failures of a run, for a summary without a display of progress.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::terminal::labels::CallLabels;
use crate::terminal::repeat_command::RepeatCommand;
use crate::terminal::{
    MAX_PIPED_SUBJECT_COLUMNS, RowKey, call_path, failure_line, mask_and_escape, outcome_label,
    row_key, short_subject,
};
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::json::Input;
use toolq_core::types::{
    Call, CallRef, CheckedCall, EmitError, Event, EventSink, Outcome, OutcomeKind, Tool, Verdict,
};

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

/// What the texts about a call are made of if it fails. Most calls succeed, and making the texts takes longer than much of
/// what else a quick call needs.
struct UnfinishedCall {
    call: Call,
    /// The tool and the input that it gets. `None` if the call was rejected.
    accepted: Option<(Arc<Tool>, Input)>,
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
        let call = CallRef::new(&checked.call, None);
        let unfinished = UnfinishedCall {
            call: checked.call.clone(),
            accepted: match &checked.verdict {
                Verdict::Accepted(accepted) => {
                    Some((Arc::clone(&accepted.tool), accepted.input.clone()))
                }
                Verdict::Rejected(_) => None,
            },
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
        let failure = self.describe(&known, outcome, duration);
        self.failures.push(failure);
    }

    fn describe(
        &self,
        UnfinishedCall { call, accepted }: &UnfinishedCall,
        outcome: &Outcome,
        duration: Duration,
    ) -> CallFailure {
        let mask = &self.mask;
        let accepted = accepted.as_ref().map(|(tool, input)| (&**tool, input));
        let labels = CallLabels::from_parts(call, accepted);
        let name = call_path(&CallRef::new(call, None), &labels.name);
        let repeat =
            accepted.and_then(|(tool, _)| self.repeat.repeat_of_accepted(call, tool, mask));
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
