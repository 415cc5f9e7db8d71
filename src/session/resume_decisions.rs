//! What an earlier run means for the calls of this one.

use std::sync::Arc;

use crate::output::CommandError;
use crate::plan_file::PlannedCalls;
use crate::session::changed_context::{ChangedContext, changed_error};
use crate::session::log_request::{LogRequest, OpenedLog};
use crate::session::log_subject::LogSubject;
use redact::Mask;
use toolq_core::types::{Call, CheckedCall, ResumeState};
use toolq_engine::PriorCalls;
use toolq_log::{SessionLog, TaskHistory};

/// Decides what becomes of calls, based on what the log of an earlier run says about them.
pub struct ResumeDecisions {
    /// `None` unless a run is resumed or repeated.
    history: Option<Arc<TaskHistory>>,
    /// Every result comes from the history, and nothing runs.
    is_repetition: bool,
    mask: Arc<Mask>,
    /// The plan that is applied.
    plan: Option<Arc<PlannedCalls>>,
    /// What has changed, so that not all calls may run.
    changed: Option<ChangedContext>,
    /// All calls of the input were already compared with the history.
    is_compared: bool,
}

impl ResumeDecisions {
    /// Takes what `opened` says about earlier runs of `request`.
    pub fn new(opened: &OpenedLog, request: &LogRequest<'_>) -> Self {
        let is_repetition = opened.answers.is_some();
        let resumed = opened.log.as_ref().and_then(SessionLog::history);
        let changed = resumed.as_deref();
        let changed = changed.and_then(|history| ChangedContext::find(history, request));
        Self {
            history: resumed.or_else(|| opened.answers.clone()),
            is_repetition,
            mask: Arc::clone(&request.setup.mask),
            plan: request.plan.cloned(),
            changed,
            is_compared: opened.compared_turn.is_some()
                || matches!(request.subject, LogSubject::Call(_)),
        }
    }
}

impl PriorCalls for ResumeDecisions {
    type Conflict = CommandError;

    /// Returns the calls whose outcome the log doesn't decide, so their tools must be known. Returns an empty list if
    /// nothing may run: the root has moved, or the log has a different call at the position of one of `calls`.
    fn open_calls<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call> {
        let Some(history) = &self.history else {
            return calls.iter().collect();
        };
        let conflicts =
            |call: &Call| !self.is_compared && history.check_call(call, &self.mask).is_err();
        let is_moved = matches!(self.changed, Some(ChangedContext::Root));
        if self.is_repetition || is_moved || calls.iter().any(conflicts) {
            return Vec::new();
        }
        let open = calls.iter().filter(|call| history.is_undecided(call));
        open.collect()
    }

    /// Returns what is known of a call. What this run's own log says counts for more than what the input says.
    ///
    /// # Errors
    /// The log has another call at this position, its result can't be read, or the call would have to run but nothing
    /// may.
    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, CommandError> {
        if let Some(history) = &self.history {
            if self.is_repetition {
                let result = history.logged_result(&checked.call)?;
                return Ok(ResumeState::Answered(Box::new(result)));
            }
            let is_known = if self.is_compared {
                history.contains(&checked.call)
            } else {
                history.check_call(&checked.call, &self.mask)?
            };
            let changed = self.changed.as_ref();
            if let Some(changes) = changed.and_then(|changed| changed.blocking(checked, history)) {
                return Err(changed_error(&checked.call.name, &changes));
            }
            if is_known {
                return Ok(history.resume_state(checked)?);
            }
        }
        Ok(checked.resume_state.clone())
    }

    /// Adds what is recorded about the calls of a turn, unless an applied plan doesn't have these calls.
    fn resume_calls(&self, calls: &mut [CheckedCall]) -> Result<(), CommandError> {
        if let Some(plan) = &self.plan {
            plan.check_calls(calls)?;
        }
        calls.iter_mut().try_for_each(|checked| {
            checked.resume_state = self.resume_state(checked)?;
            Ok(())
        })
    }
}
