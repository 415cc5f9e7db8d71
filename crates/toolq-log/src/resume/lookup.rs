//! Queries of a history: whether a call is the one that the log has in its place, and what to do with it.

use crate::call_log::LoggedCallState;
use crate::records::{CallContent, recorded_text, sha256_hex};
use crate::resume::history::{CallPosition, TaskHistory};
use crate::resume::logged_call::LoggedCall;
use crate::resume::policy::{ResumeDecision, decide_on_resume};
use crate::resume::restore_result::RestoreError;
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::text::{escape, truncate_to_columns};
use toolq_core::types::{
    AcceptedCall, Call, CheckedCall, Effect, Invocation, PriorAttempts, ResumeState, Verdict,
};

/// Width of a call in a message, in columns.
const MAX_PREVIEW_CHARS: usize = 60;

/// The log has a different call in the place of a requested one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("turn {turn}, call {position}: the session log has {logged}, the input has {requested}")]
pub struct CallConflict {
    turn: usize,
    position: usize,
    /// `pay {"amount":5}`
    logged: String,
    requested: String,
}

impl TaskHistory {
    /// Returns whether the log has a call in the place of `call`.
    pub fn contains(&self, call: &Call) -> bool {
        self.find_logged_call(call).is_some()
    }

    /// Returns whether the log has `call`.
    ///
    /// # Errors
    /// The log has another call in its place.
    pub fn check_call(&self, call: &Call, mask: &Mask) -> Result<bool, CallConflict> {
        match self.find_logged_call(call) {
            Some(logged_call) if is_same_call(logged_call, call, mask) => Ok(true),
            Some(logged_call) => Err(self.conflict_with(logged_call, call, mask)),
            None => Ok(false),
        }
    }

    /// Returns what this run should do with a call that has passed [`check_call`](Self::check_call).
    ///
    /// # Errors
    /// Its result can't be read.
    pub fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, RestoreError> {
        let Some(logged_call) = self.find_logged_call(&checked.call) else {
            return Ok(ResumeState::NotStarted);
        };
        let attempts = || {
            Box::new(PriorAttempts {
                count: logged_call.log.attempts(),
                idempotency_key: logged_call.idempotency_key.as_deref().map(str::to_owned),
            })
        };
        Ok(match decide_call(logged_call, checked) {
            ResumeDecision::Run | ResumeDecision::Conflict => ResumeState::NotStarted,
            ResumeDecision::RunAgain => ResumeState::Started(attempts()),
            ResumeDecision::Probe => ResumeState::NeedsProbe(attempts()),
            ResumeDecision::InDoubt => ResumeState::InDoubt(attempts()),
            ResumeDecision::Restore => match &logged_call.answer {
                Some(answer) => {
                    ResumeState::Answered(Box::new(self.restore_result(logged_call, answer)?))
                }
                None => ResumeState::InDoubt(attempts()),
            },
        })
    }

    /// Returns whether the log has `call` under the same id. Its tool and its input may differ.
    pub fn has_same_id(&self, call: &Call, mask: &Mask) -> bool {
        self.find_logged_call(call)
            .is_some_and(|logged_call| *logged_call.tool_use_id == *recorded_text(&call.id, mask))
    }

    /// Returns whether what happens to a call depends on the current tools rather than on the log.
    pub fn needs_current_tools(&self, checked: &CheckedCall) -> bool {
        let Some(logged_call) = self.find_logged_call(&checked.call) else {
            return true;
        };
        let is_rejected = matches!(checked.verdict, Verdict::Rejected(_));
        match decide_call(logged_call, checked) {
            ResumeDecision::Restore | ResumeDecision::InDoubt => false,
            ResumeDecision::Run | ResumeDecision::RunAgain | ResumeDecision::Probe => {
                !(is_rejected && logged_call.last_rejection.is_some())
            }
            ResumeDecision::Conflict => true,
        }
    }

    /// Returns whether the log leaves open what happens to a call, because it has no result.
    pub fn is_undecided(&self, call: &Call) -> bool {
        self.find_logged_call(call)
            .is_none_or(|logged_call| match logged_call.log.state() {
                LoggedCallState::Ended | LoggedCallState::Done | LoggedCallState::InDoubt => false,
                LoggedCallState::Requested
                | LoggedCallState::Started
                | LoggedCallState::Interrupted
                | LoggedCallState::NotDone => true,
            })
    }

    /// Finds a call of the input. An agent that runs again makes its calls anew.
    pub(super) fn find_logged_call(&self, call: &Call) -> Option<&LoggedCall> {
        let (turn, position) = (call.turn, call.position);
        call.parent
            .is_none()
            .then(|| self.call_at(CallPosition { turn, position }))?
    }

    fn conflict_with(&self, logged_call: &LoggedCall, call: &Call, mask: &Mask) -> CallConflict {
        let logged = self.read_content(logged_call.call_extent).ok();
        let logged: Option<CallContent<'_>> = logged
            .as_ref()
            .and_then(|body| serde_json::from_str(body.get()).ok());
        let input = logged.as_ref().and_then(|content| content.input.as_ref());
        let requested = call.input.as_ref().ok().map(Input::text);
        let requested = requested.map(|text| mask.apply_to_json(text));
        CallConflict {
            turn: call.turn,
            position: call.position,
            logged: preview_call(
                &logged_call.tool_name,
                input.map(|input| input.as_raw().get()),
            ),
            requested: preview_call(&mask.apply(&call.name), requested.as_deref()),
        }
    }
}

/// Compares tool and input of two calls in the same place. The id doesn't count, since recordings reuse ids.
fn is_same_call(logged_call: &LoggedCall, call: &Call, mask: &Mask) -> bool {
    let input = call.input.as_ref().ok();
    let digest = input.map(|input| sha256_hex(input.text().as_bytes()));
    *logged_call.tool_name == *recorded_text(&call.name, mask)
        && logged_call.input_sha256.as_deref() == digest.as_deref()
}

fn decide_call(logged_call: &LoggedCall, checked: &CheckedCall) -> ResumeDecision {
    let accepted = match &checked.verdict {
        Verdict::Accepted(accepted) => Some(&**accepted),
        Verdict::Rejected(_) => None,
    };
    let effect = max_effect(logged_call, accepted);
    let has_probe = accepted.is_some_and(|accepted| accepted.probe.is_some());
    decide_on_resume(Some(logged_call.log.state()), true, effect, has_probe)
}

/// Returns the more severe of the tool's effect when the call was started and its effect now. If an agent worked on it, and
/// still would, only its calls count.
fn max_effect(logged_call: &LoggedCall, accepted: Option<&AcceptedCall>) -> Effect {
    let is_agents = logged_call.log.is_agent_call()
        && accepted
            .is_some_and(|accepted| matches!(accepted.invocation, Some(Invocation::Agent(_))));
    let current = accepted.filter(|_| !is_agents);
    let current = current.map(|accepted| accepted.tool.effect);
    let both = [logged_call.log.effect_so_far(), current]
        .into_iter()
        .flatten();
    both.max().unwrap_or(Effect::Write)
}

/// Formats a call for a message: `pay {"amount":5}`.
fn preview_call(tool: &str, input: Option<&str>) -> String {
    let text = format!("{tool} {}", input.unwrap_or("without input"));
    escape(&truncate_to_columns(&text, MAX_PREVIEW_CHARS)).into_owned()
}
