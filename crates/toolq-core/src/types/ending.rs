//! How an attempt ended, and why calls don't run.

use std::path::PathBuf;
use std::time::Duration;

use strum::IntoStaticStr;

use crate::types::backing::LimitKind;

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
    /// The status of the response that a redirect led to. Who sent the redirect may have done the work.
    RedirectedStatus(u16),
    /// A server answered that the call failed.
    ServerError,
    /// An agent, a server or a built-in tool gave its answer.
    Answered,
    /// An agent ran out of turns. Its result is the last text of its model.
    Unfinished,
}

impl CallEnding {
    /// Returns the status of the response.
    pub fn http_status(self) -> Option<u16> {
        match self {
            Self::HttpStatus(status) | Self::RedirectedStatus(status) => Some(status),
            _ => None,
        }
    }
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
    /// What was started, if that isn't the same call, or if its result leaves its effect open.
    pub earlier: Option<CallConflict>,
}

/// Why a call doesn't run: what names it names another call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallConflict {
    /// The tool of that call.
    pub tool: String,
    /// Its input, as JSON, with secrets masked.
    pub input: String,
    /// What the model received as its result. `None` if it has none.
    pub result: Option<String>,
    /// Whether values name it, and not an id.
    pub is_once: bool,
    /// Where it is on record.
    pub log: PathBuf,
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

/// What a call that failed or was stopped wrote until then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOutput {
    /// The output of a program, the body of a response, or the last text of an agent's model, shortened if long.
    pub text: String,
    /// The end of a program's standard error. Empty for a request or an agent.
    pub stderr: String,
    /// Byte counts of the text, and the file that holds it.
    pub captured: CaptureStats,
}

/// How an output was captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Bytes received.
    pub total_bytes: u64,
    /// Bytes left out in the middle, or 0 if the text is complete.
    pub cut_bytes: u64,
    /// Byte offset in the text where they were left out.
    pub cut_offset: usize,
    /// The file that holds the whole output (up to `max_saved`), if the text was cut.
    pub saved_path: Option<Box<PathBuf>>,
    /// The files that hold what a server answered and isn't text.
    pub attachments: Box<[PathBuf]>,
    /// Whether invalid UTF-8 was replaced by U+FFFD.
    pub lossy: bool,
    /// Number of processes that the program left running and that were killed.
    pub killed_leftovers: u32,
    /// Whether a process that the program left was still printing when it was killed, so that the output ends early.
    pub was_printing: bool,
    /// The earlier call whose result this is, if the call itself didn't run.
    pub cached: Option<Box<CacheHit>>,
}

/// Where a result from the cache comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheHit {
    /// How long ago the result was taken.
    pub age: Duration,
    /// The id of the call that ran.
    pub tool_use_id: String,
}

/// Why a program couldn't be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnError {
    /// The program as declared.
    pub program: String,
    /// The working directory relative to the root, if it is the cause.
    pub directory: Option<String>,
    /// The interpreter that the first line of the program names and that isn't there, if that is the cause.
    pub interpreter: Option<String>,
    /// Why the program can't be started in its `sandbox`, if that is the cause.
    pub confinement: Option<String>,
    /// The operating system's error number (errno).
    pub errno: i32,
}

/// Why a request got no complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportError {
    /// How far the request got.
    pub phase: TransportPhase,
    /// Scheme, host and port of the request, without user, path or query; or `the host process`, as within a sentence.
    pub origin: String,
    /// The cause, as far as it decides what to do about it.
    pub cause: TransportCause,
    /// The cause, as a message.
    pub detail: String,
}

/// The causes of a failed request that call for different reactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TransportCause {
    /// Nothing listens at the address.
    ConnectionRefused,
    /// The host has an address that isn't public, and the tool may only contact public ones.
    NonPublicAddress,
    /// The host name couldn't be resolved.
    UnknownHost,
    /// A secure connection couldn't be established.
    Tls,
    /// Any other cause.
    #[default]
    Other,
}

/// How far a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportPhase {
    /// It couldn't be built from the given values. Nothing was sent.
    Build,
    /// The name wasn't resolved, or nothing accepted the connection. Nothing was sent.
    Connect,
    /// It may have been sent, but no complete response head arrived.
    Response,
    /// The response body broke off.
    Body,
    /// The response body exceeds the size limit.
    TooLarge,
}

/// Why a call was never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotExecutedCause {
    /// An earlier call failed, and its tool has `on_failure: stop`.
    PrecedingFailed {
        /// The tool of the call that failed.
        tool: String,
    },
    /// Whether an earlier call had its effect isn't known.
    PrecedingInDoubt {
        /// The tool of the call in doubt.
        tool: String,
    },
    /// An earlier call needs an approval that wasn't given. Only calls that aren't `read` wait for that.
    PrecedingNeedsApproval {
        /// The tool of that call.
        tool: String,
    },
    /// A call of the same batch failed, and its tool has `on_failure: cancel_siblings`.
    SiblingFailed {
        /// The tool of the call that failed.
        tool: String,
    },
    /// The stream broke off before the end of the message that contains the call.
    StreamAborted,
    /// The run, or the agent that made the call, stopped before the call could start.
    Halted(HaltCause),
    /// An earlier call completed the session.
    SessionCompleted {
        /// The tool of that call.
        tool: String,
    },
    /// The agent has no turn left to read a result, and this call isn't its answer.
    LastTurn,
}

/// Why a run starts no more calls and stops the running ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HaltCause {
    /// toolq received this signal.
    Signal(u8),
    /// The reader of the results is gone.
    OutputLost,
    /// A budget of the run is used up.
    OverBudget(BudgetLimit),
    /// The agent that made the calls was stopped. Affects only its own calls.
    AgentStopped,
    /// The client of a server canceled the call. Affects only this call.
    ClientCanceled,
    /// The client of a server has left.
    ClientLeft,
    /// The approver of a call stopped the run.
    ApproverStopped,
    /// The turn lost too many workers of a queue, so it isn't run anymore.
    WorkersLost,
}

/// A budget of a run, over all its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetLimit {
    /// Maximum number of calls started.
    Calls(u64),
    /// Maximum time since the first turn.
    Time(Duration),
    /// Maximum number of bytes that tools produce as results, before any cut.
    Output(u64),
}

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }
}
