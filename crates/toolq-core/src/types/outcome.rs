//! Outcomes: every way in which a call can end, and what each counts as.

use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use crate::json_schema::ProblemDetail;
use crate::types::agent::{AgentFailure, AgentUsage};
use crate::types::answer::{ClientContent, CutOutput, OutputUnavailable, ResultContent};
use crate::types::ending::{
    CallConflict, CallEnding, CallOutput, CaptureStats, DoubtCause, HaltCause, NotExecutedCause,
    SpawnError, TransportError, TransportPhase,
};
use crate::types::server::ToolDrift;
use crate::types::status::{OutcomeKind, Reach, Status};

/// How a call ended. Every kind of failure has its own variant, so the terminal, the log, the texts for the model, and
/// the reports never need to parse a message.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It ran successfully.
    Succeeded {
        /// What the model receives.
        content: ResultContent,
        /// Byte counts and, if the content was cut, the file with the whole output.
        captured: CaptureStats,
        /// How the process or request ended.
        ending: CallEnding,
        /// The same for MCP clients, if the tool belongs to a server.
        for_clients: Option<Box<ClientContent>>,
    },
    /// The program exited with an unsuccessful code or was killed by a signal, or the response had an error status.
    Failed {
        /// What it wrote.
        output: CallOutput,
        /// How it ended.
        ending: CallEnding,
    },
    /// It ran to completion, but its output doesn't match what the tool declares.
    BadOutput {
        /// What is wrong, and where.
        problem: String,
        /// What it wrote.
        output: CallOutput,
        /// How it ended.
        ending: CallEnding,
    },
    /// It was stopped because it exceeded a time limit.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// Whether this is an agent that hadn't started any call, so that nothing was done.
        no_calls_started: bool,
        /// What it wrote.
        output: CallOutput,
    },
    /// The program couldn't be started, so nothing ran.
    NotStarted(SpawnError),
    /// The request got no complete response.
    TransportFailed(TransportError),
    /// It started and may have taken effect, but no complete result confirms it. Only for tools that write: toolq never
    /// repeats such a call.
    InDoubt {
        /// Why the effect is unknown.
        cause: DoubtCause,
        /// What it wrote.
        output: CallOutput,
    },
    /// An agent failed to give an answer.
    AgentFailed {
        /// Why.
        failure: AgentFailure,
        /// What it wrote.
        output: CallOutput,
    },
    /// An environment variable that the tool needs isn't set, so nothing ran.
    MissingVariable(String),
    /// Its server announces the tool differently from what was locked, so nothing ran.
    ToolDrifted(ToolDrift),
    /// The output that it should read isn't there.
    OutputUnavailable(OutputUnavailable),
    /// The tool has no backing.
    NoBacking,
    /// The session log refused the start record, so nothing ran.
    LogRefused(String),
    /// It was stopped while running because another call of its batch failed.
    Canceled {
        /// The tool of the call that failed.
        failed_tool: String,
        /// What it wrote.
        output: CallOutput,
    },
    /// It was stopped while running because the run stopped.
    Interrupted {
        /// Why the run stopped.
        cause: HaltCause,
        /// What it wrote.
        output: CallOutput,
    },
    /// It was never started.
    NotExecuted(NotExecutedCause),
    /// Its tool failed too many times in a row.
    Paused {
        /// The number of failures.
        failures: u32,
    },
    /// It needs an approval that wasn't given.
    NeedsApproval,
    /// Its approval was requested and denied.
    Denied {
        /// Why, if that was said.
        reason: Option<String>,
    },
    /// The call was rejected.
    Rejected(Rejection),
    /// A panic in toolq itself, confined to this call.
    InternalError(String),
    /// It ended in an earlier run, and the memory has its result.
    Restored(RestoredResult),
    /// What names it names a call with another tool or input, which has run. It didn't.
    Conflict(Box<CallConflict>),
    /// It is running already, and its result didn't come in time.
    IsRunning,
}

impl Outcome {
    /// Returns how the process or request ended, if it ran to completion.
    pub fn ending(&self) -> Option<CallEnding> {
        match self {
            Self::Succeeded { ending, .. }
            | Self::Failed { ending, .. }
            | Self::BadOutput { ending, .. } => Some(*ending),
            _ => None,
        }
    }

    /// Returns what the call wrote, if it was started and didn't succeed.
    pub fn output(&self) -> Option<&CallOutput> {
        match self {
            Self::Failed { output, .. }
            | Self::BadOutput { output, .. }
            | Self::TimedOut { output, .. }
            | Self::InDoubt { output, .. }
            | Self::AgentFailed { output, .. }
            | Self::Canceled { output, .. }
            | Self::Interrupted { output, .. } => Some(output),
            _ => None,
        }
    }

    /// Returns what was captured of the output, if there was any.
    pub fn captured(&self) -> Option<&CaptureStats> {
        match self {
            Self::Succeeded { captured, .. } => Some(captured),
            _ => self.output().map(|output| &output.captured),
        }
    }

    /// Returns what was captured of a program that ended by itself, for the caller to complete.
    pub fn captured_mut(&mut self) -> Option<&mut CaptureStats> {
        match self {
            Self::Succeeded { captured, .. } => Some(captured),
            Self::Failed { output, .. } | Self::BadOutput { output, .. } => {
                Some(&mut output.captured)
            }
            _ => None,
        }
    }
}

/// A result from the memory.
#[derive(Debug, Clone)]
pub struct RestoredResult {
    /// How the call ended.
    pub status: Status,
    /// Whether the model received it as an error.
    pub is_error: bool,
    /// What the model received.
    pub content: ResultContent,
    /// What is left of its output, if that was cut.
    pub cut_output: Option<Box<CutOutput>>,
    /// What the agent used, if the call ran one.
    pub agent_usage: Option<Box<AgentUsage>>,
    /// Where it comes from. `None` if a probe has found it.
    pub source: Option<Box<ResultSource>>,
}

/// Where a result comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSource {
    /// The log of the run that has made the call.
    pub log: PathBuf,
    /// When the call ended, in milliseconds since 1970.
    pub ended_ms: u64,
    /// The id that the call had then, if it has another one now: its tool runs once for some of its values.
    pub other_id: Option<String>,
}

/// Why a call may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The kind of rejection.
    pub reason: RejectionReason,
    /// The problems found. Never empty.
    pub details: Vec<ProblemDetail>,
}

/// The kinds of rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// No tool has this name.
    UnknownTool,
    /// The input violates the tool's schema, or the tool can't use a value where its template puts it.
    InvalidInput,
    /// The arguments are not a JSON object.
    InvalidArguments,
    /// The tool failed to describe its input, or its schema can't be used.
    UnusableTool,
    /// The response hit a token limit inside this call.
    Truncated,
    /// The stream broke off inside this call.
    StreamAborted,
    /// The response with this call was refused, has failed, or was canceled.
    ResponseRefused,
    /// The conversation has a result that may be that of this call, but doesn't say so.
    MisplacedResult,
    /// A path leads outside the root.
    PathOutsideRoot,
    /// A path leads a tool with effects into a `.git` or to one of toolq's own files.
    OwnFile,
    /// The call would nest agents deeper than `max_depth` allows.
    TooDeep,
    /// The calling agent runs concurrently with other calls, and this call isn't concurrency-safe.
    NotConcurrencySafe,
}

impl RejectionReason {
    /// The status of a call that is rejected for this reason.
    pub fn status(self) -> Status {
        match self {
            Self::UnknownTool => Status::UnknownTool,
            Self::InvalidInput | Self::UnusableTool => Status::InvalidInput,
            Self::InvalidArguments => Status::InvalidArguments,
            Self::Truncated | Self::StreamAborted => Status::Truncated,
            Self::ResponseRefused => Status::ResponseRefused,
            Self::MisplacedResult => Status::MisplacedResult,
            Self::PathOutsideRoot | Self::OwnFile => Status::PathOutsideRoot,
            Self::TooDeep => Status::TooDeep,
            Self::NotConcurrencySafe => Status::NotConcurrencySafe,
        }
    }
}

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
                // A server that timed out (408) may have begun.
                CallEnding::HttpStatus(400..=407 | 409..500) => Reach::Refused,
                CallEnding::HttpStatus(_)
                | CallEnding::RedirectedStatus(_)
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
