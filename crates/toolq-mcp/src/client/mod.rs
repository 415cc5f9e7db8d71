//! A client's side of one connection to a server of tools, and the events that it receives.

mod handshake;
mod session;
#[cfg(test)]
mod tests;

use crate::message::RpcError;
use crate::protocol::{Implementation, ProtocolVersion};
use crate::tool::{CallToolResult, Tool};

pub use handshake::CallMeta;
pub use session::ClientSession;

// The events that a client receives from its server.

/// A call of a tool. It keeps its id even where the protocol needs several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId(pub(crate) u64);

impl CallId {
    /// Returns the id of the call's first request.
    pub fn first_request(self) -> u64 {
        self.0
    }
}

/// Something that a server said.
#[derive(Debug)]
pub enum SessionEvent {
    /// The handshake is over. Calls may be made.
    Ready(ServerIdentity),
    /// There will be no calls, for this reason.
    HandshakeFailed(String),
    /// The answer to [`list_tools`](ClientSession::list_tools), or why there is no list.
    ToolsListed(Result<ToolList, String>),
    /// A call has ended. There's exactly one such event for each call that isn't canceled.
    CallEnded {
        /// Which call.
        call: CallId,
        /// What the tool answered.
        result: Result<CallToolResult, CallError>,
    },
    /// A call that is running has come further.
    Progress {
        /// Which call.
        call: CallId,
        /// How far it is. Grows with every event of a call.
        progress: f64,
        /// What `progress` is at the end, if the server knows.
        total: Option<f64>,
        /// What the server is doing.
        message: Option<String>,
    },
}

/// Who the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The revision that the connection uses.
    pub version: ProtocolVersion,
    /// The server's name and version, if it says them.
    pub implementation: Option<Implementation>,
}

/// All tools of a server.
#[derive(Debug, Default)]
pub struct ToolList {
    /// The tools in the server's order.
    pub tools: Vec<Tool>,
    /// Why others were left out, one sentence each.
    pub problems: Vec<String>,
}

/// What a server sent that belongs to nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StrayCounts {
    /// Lines that aren't messages.
    pub noise_lines: u64,
    /// Answers to requests that were canceled or already answered.
    pub late_answers: u64,
    /// Answers with ids that the client never gave.
    pub unknown_answers: u64,
    /// Requests to the client. All but `ping` are refused.
    pub requests: u64,
}

// Why a call failed.

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error in place of a result.
    #[error("{0}")]
    Refused(RpcError),
    /// The answer isn't a result of a tool.
    #[error("the server's answer can't be read: {0}")]
    InvalidAnswer(String),
    /// The answer is longer than the client reads.
    #[error("the server's answer has {0} bytes, which is too long")]
    TooLong(u64),
    /// The server wants to ask the user something.
    #[error("the server asks for input from a user, and there is none here")]
    InputRequired,
    /// The server answered with a kind of result that the client didn't ask for.
    #[error("the server answered with a result of the kind `{0}`")]
    UnknownResultType(String),
}
