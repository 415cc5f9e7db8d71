//! Why a handshake, a list or a call failed.

use crate::protocol::ProtocolVersion;
use crate::rpc_error::RpcError;

/// Client and server could not agree on a version.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HandshakeError {
    /// The server refused the handshake.
    #[error("the server refused the handshake: {0}")]
    Refused(RpcError),
    /// The server speaks none of the versions that the client may use.
    #[error("the server speaks {}, not {wanted}", join_versions(.offered))]
    NoCommonVersion {
        /// The versions that the server offers.
        offered: Vec<String>,
        /// The version that the client asked for.
        wanted: ProtocolVersion,
    },
    /// The server's answer isn't one.
    #[error("the server's answer to {method} can't be read: {reason}")]
    InvalidAnswer {
        /// The method of the request.
        method: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
}

/// Why a server's list of tools can't be had.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ToolListError {
    /// The server refused to list its tools.
    #[error("the server refused to list its tools: {0}")]
    Refused(RpcError),
    /// The answer isn't a list of tools.
    #[error("the server's list of tools can't be read: {0}")]
    InvalidAnswer(String),
    /// The list doesn't end.
    #[error("the server's list of tools has over {0} pages")]
    Endless(usize),
    /// The list is longer than the client reads.
    #[error("the server's list of tools has more than 64 MiB")]
    TooLong,
}

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

fn join_versions(versions: &[String]) -> String {
    if versions.is_empty() {
        "no version".to_owned()
    } else {
        versions.join(", ")
    }
}
