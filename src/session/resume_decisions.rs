//! What an earlier run means for the calls of this one.

use std::sync::Arc;

use crate::output::CommandError;
use crate::session::changed_context::{ChangedContext, changed_error};
use crate::session::log_request::{LogRequest, OpenedLog};
use crate::session::log_subject::LogSubject;
use redact::Mask;
use toolq_core::types::{
    AgentHistory, Call, CheckedCall, Effect, PriorAttempts, ResumeState, Turn, Verdict,
};
use toolq_engine::PriorCalls;
use toolq_log::{LogAgentHistory, SessionLog, TaskHistory};

/// What the input says about a call, if it is a session log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState {
    /// Nothing: as far as is known, the call has never started.
    Open,
    /// The call started, but didn't end.
    Started,
    /// The call is in doubt.
    InDoubt,
}

impl InputState {
    /// Returns what `turn` says about the call at `position`.
    pub fn of_call(turn: &Turn, position: usize) -> Self {
        if turn.in_doubt_positions.contains(&position) {
            Self::InDoubt
        } else if turn.started_positions.contains(&position) {
            Self::Started
        } else {
            Self::Open
        }
    }
}

/// Decides what becomes of calls, based on what the log of an earlier run says about them.
pub struct ResumeDecisions {
    /// `None` unless a run is resumed or repeated.
    history: Option<Arc<TaskHistory>>,
    /// Every result comes from the history, and nothing runs.
    is_repetition: bool,
    mask: Arc<Mask>,
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
            mask: Arc::clone(request.mask),
            changed,
            is_compared: opened.compared_turn.is_some()
                || matches!(request.subject, LogSubject::Call(_)),
        }
    }

    /// Returns the history of what agents did.
    pub fn agent_history(&self) -> Option<Arc<dyn AgentHistory>> {
        let history = self.history.as_ref()?;
        let agent_history = LogAgentHistory::new(Arc::clone(history), Arc::clone(&self.mask));
        Some(Arc::new(agent_history))
    }

    /// Returns the calls whose outcome the log doesn't decide, so their tools must be known. Returns an empty list if
    /// nothing may run: the root has moved, or the log has a different call at the position of one of `calls`.
    pub fn open_calls<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call> {
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
    pub fn resume_state(
        &self,
        checked: &CheckedCall,
        input_state: InputState,
    ) -> Result<ResumeState, CommandError> {
        if let Some(history) = &self.history {
            if self.is_repetition {
                let result = history.logged_result(&checked.call)?;
                return Ok(ResumeState::Answered(result));
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
        Ok(state_in_input(checked, input_state))
    }
}

impl PriorCalls for ResumeDecisions {
    type Conflict = CommandError;

    fn open_calls<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call> {
        Self::open_calls(self, calls)
    }

    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, CommandError> {
        Self::resume_state(self, checked, InputState::Open)
    }
}

/// Returns the state of a call of which only the input says anything.
pub fn state_in_input(checked: &CheckedCall, input_state: InputState) -> ResumeState {
    match input_state {
        InputState::Open => ResumeState::NotStarted,
        InputState::Started => state_of_started_call(checked),
        InputState::InDoubt => ResumeState::InDoubt(prior_attempts(1)),
    }
}

/// Returns the state of a call that started but didn't end, according to the session log that is the input.
fn state_of_started_call(checked: &CheckedCall) -> ResumeState {
    let writes = match &checked.verdict {
        Verdict::Accepted(accepted) => accepted.tool.effect == Effect::Write,
        Verdict::Rejected(_) => true,
    };
    match &checked.verdict {
        _ if !writes => ResumeState::Started(prior_attempts(0)),
        Verdict::Accepted(accepted) if accepted.probe.is_some() => {
            ResumeState::NeedsProbe(prior_attempts(0))
        }
        _ => ResumeState::InDoubt(prior_attempts(1)),
    }
}

/// Returns attempts by the run whose log is the input. Their key belongs to that run.
fn prior_attempts(count: u32) -> PriorAttempts {
    PriorAttempts {
        count,
        idempotency_key: None,
        has_nested_doubt: false,
    }
}
