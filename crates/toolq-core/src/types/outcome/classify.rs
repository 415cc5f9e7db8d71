//! What an outcome counts as: the word and the status for it, and whether the call succeeded, ran to its end, was skipped,
//! was stopped, or is in doubt.

use crate::types::agent::AgentFailure;
use crate::types::call_ending::{CallEnding, DoubtCause};
use crate::types::halt::{HaltCause, NotExecutedCause};
use crate::types::outcome::Outcome;
use crate::types::outcome_kind::OutcomeKind;
use crate::types::reach::Reach;
use crate::types::status::Status;
use crate::types::transport::TransportPhase;

impl Outcome {
    /// Whether the model receives the result as an error.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Succeeded { .. } => false,
            Self::Restored(restored) => restored.is_error,
            _ => true,
        }
    }

    /// Whether the call ran to completion, successfully or not.
    pub fn is_completed(&self) -> bool {
        match self {
            Self::Succeeded { .. }
            | Self::Failed { .. }
            | Self::BadOutput { .. }
            | Self::OutputUnavailable(_)
            | Self::AgentFailed { .. } => true,
            Self::Restored(restored) => restored.status.is_completed(),
            _ => false,
        }
    }

    /// Whether the call was answered without being started, so that a later run may start it.
    pub fn is_skipped(&self) -> bool {
        matches!(
            self,
            Self::NotExecuted(_)
                | Self::Paused { .. }
                | Self::NeedsApproval
                | Self::LogRefused(_)
                | Self::Conflict(_)
                | Self::IsRunning
        )
    }

    /// What is known of its effect. A call in doubt has none: that is decided elsewhere.
    pub fn reach(&self) -> Reach {
        match self {
            Self::Failed { ending, .. } => match ending {
                CallEnding::HttpStatus(429) => Reach::Nothing,
                CallEnding::ExitCode(_) | CallEnding::ServerError | CallEnding::Answered => {
                    Reach::Refused
                }
                CallEnding::HttpStatus(status) if *status < 500 => Reach::Refused,
                CallEnding::HttpStatus(_)
                | CallEnding::Signal(_)
                | CallEnding::LimitExceeded(_)
                | CallEnding::Unfinished => Reach::Open,
            },
            Self::TransportFailed(error) => match error.phase {
                TransportPhase::Build | TransportPhase::Connect => Reach::Nothing,
                TransportPhase::Response | TransportPhase::Body | TransportPhase::TooLarge => {
                    Reach::Open
                }
            },
            Self::TimedOut {
                no_calls_started: true,
                ..
            }
            | Self::NotStarted(_)
            | Self::MissingVariable(_)
            | Self::ToolDrifted(_)
            | Self::NoBacking
            | Self::LogRefused(_)
            | Self::NotExecuted(_)
            | Self::Paused { .. }
            | Self::NeedsApproval
            | Self::Conflict(_)
            | Self::IsRunning
            | Self::Denied { .. }
            | Self::Rejected(_) => Reach::Nothing,
            Self::TimedOut { .. }
            | Self::InDoubt { .. }
            | Self::AgentFailed { .. }
            | Self::Canceled { .. }
            | Self::Interrupted { .. }
            | Self::InternalError(_) => Reach::Open,
            Self::Succeeded { .. }
            | Self::BadOutput { .. }
            | Self::OutputUnavailable(_)
            | Self::Restored(_) => Reach::Done,
        }
    }

    /// Whether the call may have taken effect.
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::InDoubt { .. } => true,
            Self::Restored(restored) => restored.status == Status::InDoubt,
            _ => false,
        }
    }

    /// Whether it is a failure of the call's own, which cancels its siblings if its tool says so.
    pub fn cancels_siblings(&self) -> bool {
        self.is_error() && !self.is_skipped() && !self.is_stopped_externally()
    }

    /// Whether the call was stopped for a reason outside of it, so it counts neither as a success nor as a failure.
    pub fn is_stopped_externally(&self) -> bool {
        match self {
            Self::Canceled { .. }
            | Self::Interrupted { .. }
            | Self::InDoubt {
                cause: DoubtCause::Interrupted(_) | DoubtCause::Canceled(_),
                ..
            } => true,
            Self::Restored(restored) => restored.status.is_stopped_externally(),
            _ => false,
        }
    }

    /// Whether the result was restored from an earlier run.
    pub fn is_restored(&self) -> bool {
        matches!(self, Self::Restored(_))
    }

    /// The word for how it ended, as users see it.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            _ if !self.is_error() => OutcomeKind::Ok,
            _ if self.is_in_doubt() => OutcomeKind::InDoubt,
            _ if self.is_skipped() => OutcomeKind::Skipped,
            Self::Rejected(_) => OutcomeKind::Rejected,
            Self::Restored(restored) if restored.status.is_rejected() => OutcomeKind::Rejected,
            Self::Restored(restored) if restored.status.is_skipped() => OutcomeKind::Skipped,
            _ => OutcomeKind::Failed,
        }
    }

    /// The status used in logs and events.
    pub fn status(&self) -> Status {
        match self {
            Self::Succeeded { .. } => Status::Ok,
            Self::Failed { .. } | Self::OutputUnavailable(_) => Status::Failed,
            Self::BadOutput { .. } => Status::BadOutput,
            Self::TimedOut { .. } => Status::Timeout,
            Self::NotStarted(_) | Self::MissingVariable(_) | Self::ToolDrifted(_) => {
                Status::NotStarted
            }
            Self::TransportFailed(_) => Status::Unavailable,
            Self::InDoubt { .. } => Status::InDoubt,
            Self::NoBacking => Status::NoBacking,
            Self::LogRefused(_)
            | Self::AgentFailed {
                failure: AgentFailure::LogRefused(_),
                ..
            } => Status::LogRefused,
            Self::Canceled { .. } => Status::Canceled,
            Self::AgentFailed {
                failure: AgentFailure::OverBudget { .. },
                ..
            }
            | Self::Interrupted {
                cause: HaltCause::OverBudget(_),
                ..
            }
            | Self::NotExecuted(NotExecutedCause::Halted(HaltCause::OverBudget(_))) => {
                Status::OverBudget
            }
            Self::AgentFailed { .. } => Status::AgentFailed,
            Self::Interrupted { .. } => Status::Interrupted,
            Self::NotExecuted(_) => Status::NotExecuted,
            Self::Paused { .. } => Status::Paused,
            Self::Conflict(_) => Status::Conflict,
            Self::IsRunning => Status::IsRunning,
            Self::NeedsApproval => Status::NeedsApproval,
            Self::Denied { .. } => Status::Denied,
            Self::Rejected(rejection) => rejection.reason.status(),
            Self::InternalError(_) => Status::InternalError,
            Self::Restored(restored) => restored.status.clone(),
        }
    }
}
