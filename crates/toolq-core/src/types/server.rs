//! Servers: programs that serve tools by the Model Context Protocol (MCP).

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::types::backing::{BodyTemplate, CommandBacking};
use crate::types::tool_lock::ToolLock;

/// An entry of `servers`. The program is started at the first call of one of its tools and serves all of them.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The key in tools.yaml.
    pub name: String,
    /// The program. Its templates hold no values from an input, and it reads messages from stdin.
    pub command: CommandBacking,
    /// How long the program may take until it is ready for calls.
    pub startup: Duration,
    /// How long it may be without a call before it is ended; `None` keeps it until the end of the run.
    pub idle: Option<Duration>,
    /// How often it is started again within a while after it has ended by itself.
    pub restarts: u32,
    /// The revision of the protocol to speak.
    pub protocol: ServerProtocol,
    /// Whether tools.lock has the server, so that its tools are compared with it.
    pub is_locked: bool,
}

/// The revision of the protocol that a server is spoken to in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ServerProtocol {
    /// Whatever the server speaks.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The last revision that begins with `initialize`.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// The first revision without a handshake.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl ServerProtocol {
    /// The value in tools.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }
}

/// Whether what a server says about the effects of its tools counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HintPolicy {
    /// Every tool is a `write` tool, unless tools.yaml says otherwise.
    Ignore,
    /// The `effect` in tools.lock counts, which only a person changes.
    #[default]
    Locked,
    /// The server's word counts, as it was locked.
    Trust,
}

/// `mcp`: a tool of a server.
#[derive(Debug, Clone)]
pub struct McpBacking {
    /// The server.
    pub server: Arc<ServerConfig>,
    /// The tool's name there.
    pub tool: String,
    /// The arguments to send; `None` sends the input.
    pub arguments: Option<BodyTemplate>,
    /// What the tool has to be like, if tools.lock says so.
    pub lock: Option<Arc<ToolLock>>,
}
