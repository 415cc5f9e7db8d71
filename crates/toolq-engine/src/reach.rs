//! How far an attempt has come that ended without a result. This alone decides which calls are in doubt.

use std::time::Duration;

use toolq_core::types::{
    CallEnding, CallOutput, DoubtCause, Effect, Outcome, TransportError, TransportPhase,
};

/// How far an attempt may have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing was started or sent, and nothing will be.
    NotSent,
    /// It may have had an effect that happens once more if it is repeated.
    MaybeDone,
    /// It may have begun, but that does no harm: it changes nothing, changes the same again, or was stopped here.
    Harmless,
}

impl Reach {
    /// Returns how far a request has come to which there is no answer.
    pub(crate) fn of_request(effect: Effect, was_sent: bool) -> Self {
        match (was_sent, effect) {
            (false, _) => Self::NotSent,
            (true, Effect::Write) => Self::MaybeDone,
            (true, Effect::Read | Effect::Idempotent) => Self::Harmless,
        }
    }

    /// Returns how far an attempt with this outcome has come. A program that never started, a request that was never sent, and one
    /// that was rejected with status 429 have done nothing.
    pub(crate) fn of_outcome(effect: Effect, outcome: &Outcome) -> Self {
        let did_nothing = match outcome {
            Outcome::NotStarted(_) => true,
            Outcome::TransportFailed(transport) => transport.phase == TransportPhase::Connect,
            _ => outcome.ending() == Some(CallEnding::HttpStatus(429)),
        };
        Self::of_request(effect, !did_nothing)
    }

    /// Returns the outcome of a request whose connection broke.
    pub(crate) fn outcome_of_loss(
        effect: Effect,
        error: TransportError,
        output: impl FnOnce() -> CallOutput,
    ) -> Outcome {
        let was_sent = matches!(error.phase, TransportPhase::Response | TransportPhase::Body);
        match Self::of_request(effect, was_sent) {
            Self::MaybeDone => Outcome::InDoubt {
                cause: DoubtCause::ConnectionLost(Box::new(error)),
                output: output(),
            },
            Self::NotSent | Self::Harmless => Outcome::TransportFailed(error),
        }
    }

    /// Returns the outcome of a request that was sent, and not answered in time.
    pub(crate) fn outcome_of_timeout(
        effect: Effect,
        limit: Duration,
        output: CallOutput,
    ) -> Outcome {
        match Self::of_request(effect, true) {
            Self::MaybeDone => Outcome::InDoubt {
                cause: DoubtCause::TimedOut(limit),
                output,
            },
            Self::NotSent | Self::Harmless => Outcome::TimedOut {
                no_calls_started: false,
                limit,
                output,
            },
        }
    }
}
