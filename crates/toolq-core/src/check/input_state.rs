//! What the input says about a call decides how it resumes, unless the log of the run knows more.

use crate::types::{AcceptedCall, Effect, InputState, PriorAttempts, ResumeState, Verdict};

/// Returns the state of a call of which only the input says anything.
pub(crate) fn state_in_input(verdict: &Verdict, input_state: InputState) -> ResumeState {
    match (input_state, verdict) {
        (InputState::Open, _) => ResumeState::NotStarted,
        (InputState::Started, Verdict::Accepted(accepted)) => state_of_started_call(accepted),
        (InputState::Started, Verdict::Rejected(_)) | (InputState::InDoubt, _) => {
            ResumeState::InDoubt(Box::new(prior_attempts(1)))
        }
    }
}

/// Returns the state of a call that started but didn't end.
fn state_of_started_call(accepted: &AcceptedCall) -> ResumeState {
    match accepted.probe {
        _ if accepted.tool.effect != Effect::Write => {
            ResumeState::Started(Box::new(prior_attempts(0)))
        }
        Some(_) => ResumeState::NeedsProbe(Box::new(prior_attempts(0))),
        None => ResumeState::InDoubt(Box::new(prior_attempts(1))),
    }
}

/// Returns attempts by the run whose log is the input. Their key belongs to that run.
fn prior_attempts(count: u32) -> PriorAttempts {
    PriorAttempts {
        count,
        idempotency_key: None,
    }
}
