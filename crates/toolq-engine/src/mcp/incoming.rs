//! What a transport delivers, and how a call ends.

use std::time::Duration;

use reqwest::header::HeaderValue;

use redact::Mask;
use toolq_core::types::{ToolDrift, TransportError};
use toolq_mcp::client::CallError;
use toolq_mcp::{CallToolResult, RpcError};

/// What a transport delivers.
pub(crate) enum Incoming {
    /// A line of a program.
    Line(Vec<u8>),
    /// The beginning of a line that is too long, and its length.
    TooLong(Vec<u8>, u64),
    /// A message came in the response to an HTTP request, which carries one message.
    Message { request: u64, body: Vec<u8> },
    /// The server refused an HTTP request. Its error need not name the request.
    Refused { request: u64, error: RpcError },
    /// The response can't be read, for this reason.
    Unreadable { request: u64, reason: String },
    /// No message will come any more. That's a failure if the request has no answer yet.
    Ended {
        request: u64,
        method: String,
        failure: CallReply,
    },
    /// The server began a session with its answer to `initialize`. Only the transport needs to know.
    SessionBegan(HeaderValue),
    /// The server knows that the handshake is over. Only the transport needs to know.
    HandshakeEnded,
}

/// How many of the last lines of a server's stderr are included in the failure of a call.
const MAX_LAST_LINES: usize = 10;

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

    /// Returns the reply without secrets in what a request ended with.
    pub(crate) fn masked(mut self, mask: &Mask) -> Self {
        if let Self::Failed(TransportError { detail: text, .. }) | Self::Status { text, .. } =
            &mut self
        {
            *text = mask.apply(text).into_owned();
        }
        self
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
