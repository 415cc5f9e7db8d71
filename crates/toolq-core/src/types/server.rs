//! Servers, which serve tools by the Model Context Protocol (MCP).

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::types::backing::CommandBacking;
use crate::types::http_backing::BodyTemplate;
use crate::types::start_limits::StartLimits;
use crate::types::template::Template;
use crate::types::tool_lock::ToolLock;

/// An entry of `servers`. It is started or connected to at the first call of one of its tools, and serves all of them.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The key in tools.yaml.
    pub name: String,
    /// How it is reached. The templates hold no values from an input.
    pub transport: ServerTransport,
    /// How long it may take until it is ready for calls.
    pub startup: Duration,
    /// How long it may be without a call before it is ended; `None` keeps it until the end of the run.
    pub idle: Option<Duration>,
    /// How often its program is started again within a while after it has ended by itself.
    pub restarts: u32,
    /// The revision of the protocol to speak.
    pub protocol: ServerProtocol,
    /// It was locked when it spoke a revision that begins with `initialize`.
    pub was_legacy: bool,
    /// Which parts of its results the model reads, unless a tool says otherwise.
    pub result: ResultParts,
    /// How many calls of its tools run at once, and how often they start.
    pub start_limits: StartLimits,
    /// Whether its tools are requested at every start, to compare them with what is known of them.
    pub compares_tools: bool,
    /// The SHA-256 of what tools.lock has of the server. It is read from the server again after that has changed.
    pub lock_digest: Option<String>,
}

/// How the messages of a server are exchanged.
#[derive(Debug, Clone)]
pub enum ServerTransport {
    /// A program that is started, and reads messages from stdin.
    Program(Box<CommandBacking>),
    /// Streamable HTTP: each message is a request to a server that runs elsewhere.
    Endpoint(ServerEndpoint),
}

/// Headers that the protocol or its transport defines, beside those that begin with `mcp-`.
const PROTOCOL_HEADERS: [&str; 4] = ["accept", "content-length", "content-type", "last-event-id"];

/// The address of a server, and the headers of every request to it.
#[derive(Debug, Clone)]
pub struct ServerEndpoint {
    /// The address that gets all messages.
    pub url: Template,
    /// Header names are lowercase.
    pub headers: Vec<(String, Template)>,
}

impl ServerEndpoint {
    /// Whether the protocol or its transport defines this header, so that `headers` can't set it.
    pub fn defines_header(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        name.starts_with("mcp-") || PROTOCOL_HEADERS.contains(&&*name)
    }
}

impl ServerConfig {
    /// Returns whether a process or session of `other` can serve the calls of this server.
    pub fn is_same_as(&self, other: &Self) -> bool {
        // Every field counts, so that a new one does, too, except for what applies to its next call.
        let without_limits = |server: &Self| Self {
            start_limits: StartLimits::default(),
            ..server.clone()
        };
        format!("{:?}", without_limits(self)) == format!("{:?}", without_limits(other))
    }

    /// Returns the program that serves the tools, unless the server runs elsewhere.
    pub fn program(&self) -> Option<&CommandBacking> {
        match &self.transport {
            ServerTransport::Program(program) => Some(program),
            ServerTransport::Endpoint(_) => None,
        }
    }

    /// Returns the templates that environment variables are filled into.
    pub fn templates(&self) -> Vec<&Template> {
        let (url, pairs) = match &self.transport {
            ServerTransport::Program(program) => (None, &program.env),
            ServerTransport::Endpoint(endpoint) => (Some(&endpoint.url), &endpoint.headers),
        };
        let values = pairs.iter().map(|(_, template)| template);
        url.into_iter().chain(values).collect()
    }

    /// Returns the names of the environment variables whose values are secrets: those in `env` and `headers`, and those in
    /// the query of a URL, where some services want their keys.
    pub fn secret_names(&self) -> Vec<&str> {
        let (url, pairs) = match &self.transport {
            ServerTransport::Program(program) => (None, &program.env),
            ServerTransport::Endpoint(endpoint) => (Some(&endpoint.url), &endpoint.headers),
        };
        let query = url.into_iter().flat_map(Template::query_env_names);
        let values = pairs.iter().flat_map(|(_, template)| template.env_names());
        query.chain(values).collect()
    }
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
    /// Returns whether a revision, by its date, begins with `initialize`.
    pub(crate) fn is_legacy(date: &str) -> bool {
        !date.is_empty() && date < Self::V2026_07_28.name()
    }

    /// The value in tools.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }
}

/// Which parts of a server's result the model reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultParts {
    /// The contents; the structured content only where there are none, or for `output: json`.
    #[default]
    Content,
    /// The structured content in place of the texts. Other contents stay, and texts where there's nothing structured.
    Structured,
    /// The contents, then the structured content, unless a text is the same JSON.
    Both,
}

impl ResultParts {
    /// The value in tools.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Structured => "structured",
            Self::Both => "both",
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
    pub tool: Arc<str>,
    /// The arguments to send; `None` sends the input.
    pub arguments: Option<BodyTemplate>,
    /// Which parts of the result the model reads.
    pub result: ResultParts,
    /// What the tool has to be like, if tools.lock says so.
    pub lock: Option<Arc<ToolLock>>,
}
