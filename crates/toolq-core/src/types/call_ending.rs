//! How what ran a call ended, and why it may not be known whether the call took effect.

use std::path::PathBuf;
use std::time::Duration;

use crate::types::backing::LimitKind;
use crate::types::halt::HaltCause;
use crate::types::transport::TransportError;

/// How a process, a request, or an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnding {
    /// The exit code of a process.
    ExitCode(i32),
    /// The signal that killed a process.
    Signal(i32),
    /// A process was killed because it, or the whole call, exceeded a resource limit.
    LimitExceeded(LimitKind),
    /// The status of a response.
    HttpStatus(u16),
    /// A server answered that the call failed.
    ServerError,
    /// An agent, a server or a built-in tool gave its answer.
    Answered,
    /// An agent ran out of turns. Its result is the last text of its model.
    Unfinished,
}

/// A start that nobody has settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledStart {
    /// What it is settled by.
    pub settle_id: String,
    /// The log of the run that made it.
    pub log: PathBuf,
    /// When that was, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// What the model read about it, if that run itself left it in doubt.
    pub answer: Option<String>,
}

/// Why it isn't known whether a call took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoubtCause {
    /// The connection broke after the request was sent.
    ConnectionLost(Box<TransportError>),
    /// No complete result arrived within this time.
    TimedOut(Duration),
    /// An earlier run started it, and the log has no record of its end. With what is known of that, if the memory has it.
    EndNotLogged(Option<Box<UnsettledStart>>),
    /// The run stopped before a complete result arrived.
    Interrupted(HaltCause),
    /// It was canceled because a call of this tool in the same batch failed.
    Canceled(String),
    /// The process that watched its program was killed, and the program with it.
    ReaperKilled,
    /// It is an agent, and one of its own calls is in doubt.
    NestedCall {
        /// The tool of that call.
        tool: String,
        /// The id of that call.
        id: String,
    },
}
