//! Outcomes: every way in which a call can end.

mod classify;

use std::time::Duration;

use crate::types::agent::AgentFailure;
use crate::types::answer::{ClientContent, ResultContent};
use crate::types::call_ending::{CallEnding, DoubtCause};
use crate::types::call_output::{CallOutput, CaptureStats};
use crate::types::halt::{HaltCause, NotExecutedCause};
use crate::types::memory::{CallConflict, RestoredResult};
use crate::types::output_request::OutputUnavailable;
use crate::types::tool_lock::ToolDrift;
use crate::types::transport::{SpawnError, TransportError};
use crate::types::verdict::Rejection;

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
