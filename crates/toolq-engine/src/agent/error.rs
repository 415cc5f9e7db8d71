//! Why an agent ended without an answer, or got none from its model.

use std::time::Duration;

use crate::http::HttpError;
use toolq_core::types::{
    AgentFailure, CallOutput, DoubtCause, EmitError, Outcome, RetryCondition, TransportPhase,
};

/// Why an agent ended without an answer.
#[derive(Debug, derive_more::From)]
pub(crate) enum AgentError {
    /// The agent failed.
    #[from]
    Failure(AgentFailure),
    /// Its call ends with this outcome, for example because a request failed or a call of the agent is in doubt.
    Outcome(Outcome),
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

// Failed model requests: why they failed, and whether they may be retried.

/// Why a model request failed, and whether it may be retried.
pub(crate) struct RequestError {
    pub(crate) cause: Box<AgentError>,
    /// The retry condition that the failure matches, if any.
    pub(crate) retry_on: Option<RetryCondition>,
    /// The model is overloaded.
    pub(crate) overloaded: bool,
    /// The minimum wait before the next request that the server requested.
    pub(crate) retry_after: Option<Duration>,
}

impl RequestError {
    /// Returns an error that a retry can't fix.
    pub(crate) fn permanent(cause: impl Into<AgentError>) -> Self {
        Self {
            cause: Box::new(cause.into()),
            retry_on: None,
            overloaded: false,
            retry_after: None,
        }
    }
}

/// Converts an error that the API reported. `status` is `None` for an error without a failing HTTP status, whose `kind`
/// decides alone.
pub(crate) fn from_status(
    status: Option<u16>,
    kind: &str,
    message: &str,
    retry_after: Option<Duration>,
) -> RequestError {
    let overloaded = status == Some(529) || kind == "overloaded_error";
    let retry_on = match (status, kind) {
        (Some(429), _) | (None, "rate_limit_error") => Some(RetryCondition::RateLimited),
        (Some(500..=504 | 529), _) | (None, "api_error" | "timeout_error" | "overloaded_error") => {
            Some(RetryCondition::Unavailable)
        }
        _ => None,
    };
    let description = match (kind, message) {
        (kind, "") => kind.to_owned(),
        ("", message) => message.to_owned(),
        (kind, message) => format!("{message} ({kind})"),
    };
    let cause = AgentFailure::ApiError {
        status,
        message: description,
        retry_after: retry_after.filter(|wait| !wait.is_zero()),
    };
    RequestError {
        cause: Box::new(cause.into()),
        retry_on,
        overloaded,
        retry_after,
    }
}

/// Converts an error of a request that got no complete HTTP response.
pub(crate) fn from_transport(error: HttpError) -> RequestError {
    let transport = match error {
        HttpError::Transport(transport) => transport,
        HttpError::Unsent(outcome) => return RequestError::permanent(outcome),
        // Neither happens here: the agent's own timeout applies, and the encoding is checked separately.
        HttpError::TimedOut(_) | HttpError::EncodedBody(_) => {
            return RequestError::permanent(Outcome::NoBacking);
        }
    };
    let is_temporary = transport.phase != TransportPhase::Build;
    RequestError {
        retry_on: is_temporary.then_some(RetryCondition::Unavailable),
        ..RequestError::permanent(AgentFailure::Unreachable(transport))
    }
}
