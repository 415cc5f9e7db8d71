//! What happens to servers while they run.

use std::path::PathBuf;
use std::time::Duration;

use crate::types::call_ending::CallEnding;

/// A server that is ready for calls, or that ended before it was.
#[derive(Debug, Clone)]
pub struct ServerStart {
    /// The key in tools.yaml.
    pub server: String,
    /// How often it had been started before in this run.
    pub earlier_starts: u32,
    /// The process id of its program, if that is known.
    pub pid: Option<i32>,
    /// Who it is. `None` if it ended before it was ready.
    pub introduction: Option<ServerIntroduction>,
    /// From its start until it was ready, or had ended.
    pub duration: Duration,
}

/// Who a server says it is, without secrets.
#[derive(Debug, Clone)]
pub struct ServerIntroduction {
    /// The revision of the protocol.
    pub protocol: String,
    /// Whether the revision is one without a handshake.
    pub is_modern: bool,
    /// Its own name, if it says it.
    pub name: Option<String>,
    /// Its own version, if it says it.
    pub version: Option<String>,
    /// The digest of what it announced, if its tools were requested.
    pub tools_digest: Option<String>,
}

/// A server that has ended.
#[derive(Debug, Clone)]
pub struct ServerEnd {
    /// The key in tools.yaml.
    pub server: String,
    /// How often it was started before the start that ends here. One may start before the one before it has ended.
    pub earlier_starts: u32,
    /// Who ended it.
    pub cause: ServerEndCause,
    /// Why, unless the run needed it no more. Without secrets.
    pub detail: Option<String>,
    /// What its program ended with, if that is known.
    pub ending: Option<CallEnding>,
    /// Since its start.
    pub duration: Duration,
    /// How many calls it got.
    pub calls: u64,
    /// How many answers arrived that nobody waited for, or not any more.
    pub unexpected_answers: u64,
    /// How many lines on its stdout weren't messages.
    pub noise_lines: u64,
    /// How much it wrote to stderr.
    pub stderr_bytes: u64,
    /// The file with the beginning of that, masked.
    pub stderr_path: Option<PathBuf>,
}

/// Who ended a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEndCause {
    /// The run had no more calls.
    RunEnded,
    /// It had no call for as long as `idle` says.
    Idle,
    /// It ended by itself.
    Exited,
    /// toolq ended it, because it couldn't be used.
    GivenUp,
}

impl ServerEndCause {
    /// The name used in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::RunEnded => "run_ended",
            Self::Idle => "idle",
            Self::Exited => "exited",
            Self::GivenUp => "given_up",
        }
    }
}
