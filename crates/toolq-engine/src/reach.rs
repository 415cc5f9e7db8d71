//! How far an attempt has come that ended without a result. This alone decides which calls are in doubt.

use std::time::Duration;

use toolq_core::types::{
    CallEnding, CallOutput, DoubtCause, Effect, HaltCause, NotExecutedCause, Outcome,
    TransportError, TransportPhase,
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
    /// that was rejected with status 429, not behind a redirect, have done nothing.
    pub(crate) fn of_outcome(effect: Effect, outcome: &Outcome) -> Self {
        let did_nothing = match outcome {
            Outcome::NotStarted(_) => true,
            Outcome::TransportFailed(transport) => transport.phase == TransportPhase::Connect,
            _ => outcome.ending() == Some(CallEnding::HttpStatus(429)),
        };
        Self::of_request(effect, !did_nothing)
    }

    /// Returns how far a call has come whose attempt was stopped when it had come this far. One that writes may have done its work
    /// before. An agent that ran out of time has its answer, and what it had started is a part of that.
    pub(crate) fn of_stopped_call(self, writes: bool, cause: &StopCause) -> Self {
        let is_by_agent = matches!(cause, StopCause::Halted(HaltCause::AgentStopped));
        match self {
            Self::Harmless if writes && !is_by_agent => Self::MaybeDone,
            reach => reach,
        }
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

    /// Returns the outcome of a call that was stopped.
    pub(crate) fn outcome_of_stop(self, cause: StopCause, output: CallOutput) -> Outcome {
        match (self, cause) {
            (Self::NotSent, StopCause::Halted(by)) => {
                Outcome::NotExecuted(NotExecutedCause::Halted(by))
            }
            (Self::NotSent, StopCause::SiblingFailed(tool)) => {
                Outcome::NotExecuted(NotExecutedCause::SiblingFailed { tool })
            }
            (Self::Harmless, StopCause::Halted(cause)) => Outcome::Interrupted { cause, output },
            (Self::Harmless, StopCause::SiblingFailed(failed_tool)) => Outcome::Canceled {
                failed_tool,
                output,
            },
            (Self::MaybeDone, StopCause::Halted(by)) => Outcome::InDoubt {
                cause: DoubtCause::Interrupted(by),
                output,
            },
            (Self::MaybeDone, StopCause::SiblingFailed(tool)) => Outcome::InDoubt {
                cause: DoubtCause::Canceled(tool),
                output,
            },
        }
    }
}

/// What stops a call from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopCause {
    Halted(HaltCause),
    /// A call of the same batch failed, of this tool.
    SiblingFailed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::TransportCause;

    /// A request that was sent may have had its effect, and only a `write` must not have it twice.
    #[test]
    fn only_writes_that_were_sent_are_in_doubt() {
        let lost = |effect, phase| {
            let error = TransportError {
                phase,
                origin: "server".to_owned(),
                cause: TransportCause::Other,
                detail: String::new(),
            };
            Reach::outcome_of_loss(effect, error, CallOutput::default).is_in_doubt()
        };
        for effect in [Effect::Read, Effect::Idempotent, Effect::Write] {
            let is_write = effect == Effect::Write;
            assert_eq!(lost(effect, TransportPhase::Response), is_write);
            assert_eq!(lost(effect, TransportPhase::Body), is_write);
            assert!(!lost(effect, TransportPhase::Connect));
            let late = Reach::outcome_of_timeout(effect, Duration::ZERO, CallOutput::default());
            assert_eq!(late.is_in_doubt(), is_write);
            for was_sent in [true, false] {
                for cause in [
                    StopCause::Halted(HaltCause::OutputLost),
                    StopCause::SiblingFailed("t".to_owned()),
                ] {
                    let reach = Reach::of_request(effect, was_sent);
                    let stopped = reach.outcome_of_stop(cause, CallOutput::default());
                    assert_eq!(stopped.is_in_doubt(), is_write && was_sent);
                    assert_eq!(matches!(stopped, Outcome::NotExecuted(_)), !was_sent);
                }
            }
        }
    }
}
