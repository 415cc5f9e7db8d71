//! What a call waits for, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::ListReply;
use crate::attempt::ProgressSender;
use crate::http::SendGuard;
use crate::mcp::connection::ServerConnection;
use toolq_core::types::{ToolDrift, ToolLock, TransportError};
use toolq_mcp::client::{CallError, CallMeta};
use toolq_mcp::{CallToolResult, RpcError};

/// How many of the last lines of a server's stderr are included in the failure of a call.
const MAX_LAST_LINES: usize = 10;

/// A call that waits for its answer.
#[derive(Debug)]
pub(crate) struct ConnectionCall {
    /// Tells the calls of a connection apart.
    pub(crate) ticket: u64,
    /// The tool's name at the server.
    pub(crate) tool: Arc<str>,
    /// What the tool has to be like. Otherwise, it isn't called.
    pub(crate) lock: Option<Arc<ToolLock>>,
    pub(crate) arguments: Arc<RawValue>,
    /// What the server receives about the call.
    pub(crate) meta: CallMeta,
    pub(crate) progress: ProgressSender,
    /// Marked before the first byte of the call can reach the server.
    pub(crate) guard: SendGuard,
    pub(crate) reply: oneshot::Sender<CallReply>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum CallReply {
    /// The server answered.
    Answered(Result<CallToolResult, CallError>),
    /// The tool isn't what was locked, so the server didn't get the call.
    Drifted(ToolDrift),
    /// There is no connection: why, with the end of the server's stderr.
    Lost { detail: String, stderr: String },
    /// There is no complete response to the call's request. Other calls may continue.
    Failed(TransportError),
    /// The response to the call's request has a status that is an error.
    Status {
        status: u16,
        retry_after: Option<Duration>,
        text: String,
    },
    /// The server no longer knows the session, and refused the call.
    SessionExpired,
    /// The server refused the call because of its headers, so its list of tools isn't what it was.
    HeadersRefused(RpcError),
    /// The server's program couldn't be started. Holds the operating system's error number.
    NotStarted(i32),
}

impl CallReply {
    /// The reply of a connection whose task is gone.
    pub(crate) fn lost() -> Self {
        Self::Lost {
            detail: "the connection is gone".to_owned(),
            stderr: String::new(),
        }
    }

    /// Returns how long the server asks to wait before the call is made again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Says in one line why there is no answer.
    pub(crate) fn describe(&self, start_failure: impl FnOnce(i32) -> String) -> String {
        match self {
            Self::NotStarted(errno) => start_failure(*errno),
            Self::Lost { detail, stderr } => describe_loss(detail, stderr),
            Self::Failed(error) => error.detail.clone(),
            Self::Status { text, .. } => text.clone(),
            Self::HeadersRefused(error) => error.to_string(),
            Self::Answered(_) | Self::Drifted(_) | Self::SessionExpired => String::new(),
        }
    }
}

/// Says why a connection is lost, with the last lines of the server's stderr. Runtimes end their reports with lines that say
/// little, so one isn't enough.
pub(crate) fn describe_loss(detail: &str, stderr: &str) -> String {
    let lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    match lines.as_slice() {
        [] => detail.to_owned(),
        [line] => format!("{detail}: {line}"),
        lines => {
            let first = lines.len().saturating_sub(MAX_LAST_LINES);
            let last_lines = lines[first..].join("\n");
            format!("{detail}. Its stderr ends with:\n{last_lines}")
        }
    }
}

/// The callers that wait for a connection.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    pub(super) calls: Vec<ConnectionCall>,
    pub(super) listeners: Vec<oneshot::Sender<ListReply>>,
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.listeners.is_empty()
    }

    pub(super) fn reply_to_all(self, reply: impl Fn() -> CallReply) {
        for listener in self.listeners {
            let _ = listener.send(Err(reply()));
        }
        for call in self.calls {
            // A call that has timed out meanwhile waits for nothing.
            let _ = call.reply.send(reply());
        }
    }
}

// A call that its server has, or soon gets.

/// A call that was handed to its server.
pub(crate) struct SentCall {
    pub(crate) connection: ServerConnection,
    pub(crate) ticket: u64,
    pub(crate) guard: SendGuard,
    pub(crate) reply: oneshot::Receiver<CallReply>,
}

impl SentCall {
    /// Returns whether another server may get the call, because this one has ended and never gets it.
    pub(crate) fn may_be_resent(&self) -> bool {
        self.connection.may_be_replaced() && self.guard.try_cancel()
    }

    /// Tells the server that the result is no longer needed. Returns whether it may have seen the call. If not, it
    /// never will.
    pub(crate) fn give_up(&self, reason: String) -> bool {
        let was_sent = !self.guard.try_cancel();
        self.connection.cancel(self.ticket, reason);
        was_sent
    }
}
