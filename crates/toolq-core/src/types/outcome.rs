use std::time::Duration;

use crate::types::agent::AgentFault;
use crate::types::answer::{Captured, Content};
use crate::types::backing::Limit;
use crate::types::halt::{Halt, NotExecuted};
use crate::types::resume::Recalled;
use crate::types::transport::{SpawnFault, Transport};
use crate::types::verdict::{Rejection, Verdict};

/// How a call ended. Every way to fail is its own value; the screen, the log, the texts for the model and the reports
/// each read it, and none of them parses text.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It ran and answered.
    Succeeded {
        /// What the model gets.
        content: Content,
        /// Bytes and, where they were cut, the file that has them all.
        captured: Captured,
        /// How the process or request ended.
        ending: Ending,
    },
    /// A program ended with a code that is no success, or by a signal, or a response had a failing status.
    Failed {
        /// What it wrote nevertheless.
        output: String,
        /// The end of its standard error; empty for a request.
        stderr: String,
        /// Bytes and file of the output.
        captured: Captured,
        /// How it ended.
        ending: Ending,
    },
    /// It ran to an end, but its output is not what the tool declares.
    BadOutput {
        /// What is wrong, and where.
        problem: String,
        /// What it wrote, a part of it where that is much.
        output: String,
        /// The end of its standard error; empty for a request.
        stderr: String,
        /// Bytes and file of the output.
        captured: Captured,
        /// How it ended.
        ending: Ending,
    },
    /// It was ended because its time was over.
    TimedOut {
        /// The limit that it exceeded.
        limit: Duration,
        /// It is an agent's, and no call of it had started: nothing was done.
        idle: bool,
        /// What it had written by then.
        output: String,
        /// The end of its standard error; empty for a request.
        stderr: String,
        /// Bytes and file of the output.
        captured: Captured,
    },
    /// The program could not be started: nothing ran.
    NotStarted(SpawnFault),
    /// The request found no answer.
    Transport(Transport),
    /// It was started and may have had its effect, but no whole answer says so. Only of tools that write: what it does
    /// is never repeated by toolq.
    InDoubt {
        /// Why nobody knows.
        doubt: Doubt,
        /// What of the answer had come.
        output: String,
        /// Bytes and file of the output.
        captured: Captured,
    },
    /// An agent came to no answer.
    AgentFailed {
        /// Why.
        fault: AgentFault,
        /// The last text of its model.
        output: String,
        /// Bytes and file of the text.
        captured: Captured,
    },
    /// A variable of the environment that the tool needs is not set: nothing ran.
    MissingVariable(String),
    /// The tool has no backing.
    NoBacking,
    /// The session log refused the start record: nothing ran.
    LogRefused(String),
    /// It was running and was ended because a call beside it failed.
    Cancelled {
        /// The tool of the call that failed.
        by: String,
        /// What it had written by then.
        output: String,
        /// The end of its standard error; empty for a request.
        stderr: String,
        /// Bytes and file of the output.
        captured: Captured,
    },
    /// It was running and was ended because the run was.
    Interrupted {
        /// What ended the run.
        by: Halt,
        /// What it had written by then.
        output: String,
        /// The end of its standard error; empty for a request.
        stderr: String,
        /// Bytes and file of the output.
        captured: Captured,
    },
    /// It was never started.
    NotExecuted(NotExecuted),
    /// Its tool failed too often in a row.
    Paused {
        /// How often.
        failures: u32,
    },
    /// It may not run.
    Rejected(Rejection),
    /// A panic in toolq itself, confined to this call.
    Broken(String),
    /// It ended in an earlier run, and its answer is in the session log.
    Recalled(Recalled),
}

/// How a process or a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The exit code of a process.
    Exit(i32),
    /// The signal that ended a process.
    Signal(i32),
    /// A process was ended because it, or all of its call together, used more than the tool allows.
    Limit(Limit),
    /// The status of a response.
    Http(u16),
    /// An agent's last answer, or toolq's own.
    Answered,
    /// An agent's last words, where it was not done within its turns.
    Unfinished,
}

/// Why it isn't known whether a call had its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The connection broke after the request was sent.
    Broken(Box<Transport>),
    /// No whole answer came within this time.
    TimedOut(Duration),
    /// An earlier run started it, and its log has no end of it.
    Orphaned,
    /// The run was ended before a whole answer came.
    Interrupted(Halt),
    /// A call of this tool, beside it, failed before a whole answer came.
    Cancelled(String),
    /// It is an agent's, and one that the agent asked for is in doubt.
    Within {
        /// The tool of that call.
        tool: String,
        /// The id of that call.
        id: String,
    },
}

impl Outcome {
    /// The verdict's outcome where the call may not run.
    pub fn of_rejection(verdict: &Verdict) -> Option<Self> {
        match verdict {
            Verdict::Accepted(_) => None,
            Verdict::Rejected(rejection) => Some(Self::Rejected(rejection.clone())),
        }
    }

    /// Whether the model is told of an error.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Succeeded { .. } => false,
            Self::Recalled(recalled) => recalled.is_error,
            _ => true,
        }
    }

    /// Whether it ran to an end of its own, well or not.
    pub fn is_completed(&self) -> bool {
        match self {
            Self::Succeeded { .. }
            | Self::Failed { .. }
            | Self::BadOutput { .. }
            | Self::AgentFailed { .. } => true,
            Self::Recalled(recalled) => recalled.is_completed(),
            _ => false,
        }
    }

    /// Whether the call was answered without ever being started, so that a later run may start it.
    pub fn is_skipped(&self) -> bool {
        matches!(
            self,
            Self::NotExecuted(_) | Self::Paused { .. } | Self::LogRefused(_)
        )
    }

    /// Whether it may have had its effect, which nobody knows.
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::InDoubt { .. } => true,
            Self::Recalled(recalled) => recalled.is_in_doubt(),
            _ => false,
        }
    }

    /// Whether it was ended for the sake of something else: neither well nor by a fault of its own.
    pub fn is_given_up(&self) -> bool {
        match self {
            Self::Cancelled { .. }
            | Self::Interrupted { .. }
            | Self::InDoubt {
                doubt: Doubt::Interrupted(_) | Doubt::Cancelled(_),
                ..
            } => true,
            Self::Recalled(recalled) => recalled.is_given_up(),
            _ => false,
        }
    }

    /// Whether it is the end of an earlier run, told once more.
    pub fn is_recalled(&self) -> bool {
        matches!(self, Self::Recalled(_))
    }

    /// The word of logs and events.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Succeeded { .. } => "ok",
            Self::Failed { .. } => "failed",
            Self::BadOutput { .. } => "bad_output",
            Self::TimedOut { .. } => "timeout",
            Self::NotStarted(_) | Self::MissingVariable(_) => "not_started",
            Self::Transport(_) => "unavailable",
            Self::InDoubt { .. } => "in_doubt",
            Self::NoBacking => "no_backing",
            Self::LogRefused(_)
            | Self::AgentFailed {
                fault: AgentFault::LogRefused(_),
                ..
            } => "log_refused",
            Self::Cancelled { .. } => "cancelled",
            Self::AgentFailed {
                fault: AgentFault::OverBudget { .. },
                ..
            }
            | Self::Interrupted {
                by: Halt::OverBudget(_),
                ..
            }
            | Self::NotExecuted(NotExecuted::Halted(Halt::OverBudget(_))) => "over_budget",
            Self::AgentFailed { .. } => "agent_failed",
            Self::Interrupted { .. } => "interrupted",
            Self::NotExecuted(_) => "not_executed",
            Self::Paused { .. } => "paused",
            Self::Rejected(rejection) => rejection.reason.name(),
            Self::Broken(_) => "internal_error",
            Self::Recalled(recalled) => recalled.status,
        }
    }

    /// How the process or request ended, where there was one.
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Self::Succeeded { ending, .. }
            | Self::Failed { ending, .. }
            | Self::BadOutput { ending, .. } => Some(*ending),
            _ => None,
        }
    }

    /// The same, to be completed.
    pub fn captured_mut(&mut self) -> Option<&mut Captured> {
        match self {
            Self::Succeeded { captured, .. }
            | Self::Failed { captured, .. }
            | Self::BadOutput { captured, .. }
            | Self::AgentFailed { captured, .. }
            | Self::TimedOut { captured, .. } => Some(captured),
            _ => None,
        }
    }

    /// What was captured of its output, where there was one.
    pub fn captured(&self) -> Option<&Captured> {
        match self {
            Self::Succeeded { captured, .. }
            | Self::Failed { captured, .. }
            | Self::BadOutput { captured, .. }
            | Self::TimedOut { captured, .. }
            | Self::AgentFailed { captured, .. }
            | Self::InDoubt { captured, .. }
            | Self::Cancelled { captured, .. }
            | Self::Interrupted { captured, .. } => Some(captured),
            _ => None,
        }
    }
}
