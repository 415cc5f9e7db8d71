//! Why an agent ended without an answer.

use toolq_core::types::{AgentFailure, CallOutput, DoubtCause, EmitError, Outcome};

/// Why an agent ended without an answer.
#[derive(Debug)]
pub(crate) enum AgentError {
    /// The agent failed.
    Failure(AgentFailure),
    /// Its call ends with this outcome, for example because a request failed or a call of the agent is in doubt.
    Outcome(Outcome),
}

impl From<AgentFailure> for AgentError {
    fn from(failure: AgentFailure) -> Self {
        Self::Failure(failure)
    }
}

impl From<EmitError> for AgentError {
    fn from(EmitError(why): EmitError) -> Self {
        Self::Failure(AgentFailure::LogRefused(why))
    }
}

impl From<Outcome> for AgentError {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::TransportFailed(transport) => {
                Self::Failure(AgentFailure::Unreachable(transport))
            }
            outcome => Self::Outcome(outcome),
        }
    }
}

/// Returns the outcome of an agent that has a call in doubt. It can't continue, since the result of that call for its
/// model isn't known yet.
pub(crate) fn in_doubt_outcome(doubt: DoubtCause) -> Outcome {
    Outcome::InDoubt {
        cause: doubt,
        output: CallOutput::default(),
    }
}
