//! The values of enumerated options, and what each means to the rest of the program.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::ValueEnum;

use crate::replay::ExecutePolicy;
use toolq_core::text::parse_duration;
use toolq_core::transcript::StreamVendor;
use toolq_core::types::{AnswerForm, Dialect};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SyncFlag {
    /// Those of calls that may have side effects
    Auto,
    /// Those of all calls
    All,
}

impl From<SyncFlag> for toolq_log::SyncPolicy {
    fn from(sync: SyncFlag) -> Self {
        match sync {
            SyncFlag::Auto => Self::Auto,
            SyncFlag::All => Self::All,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApproveFlag {
    /// You, on the terminal
    Ask,
    /// You, for all calls in advance
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressFlag {
    /// Lines if CI is set or the terminal is dumb, a bar on other terminals, else only the summary
    Auto,
    /// A bar, or lines if stderr isn't a terminal that can draw one
    Bar,
    /// A line per event
    Plain,
    /// No progress
    None,
}

/// What `toolq check` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// The problems on stderr, for people
    Text,
    /// One JSON object on stdout
    Json,
    /// Annotations for GitHub Actions on stdout
    Github,
    /// A SARIF log on stdout, for editors and code scanning
    Sarif,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// A timeline for people
    Text,
    /// One JSON object per turn, one per line
    Json,
    /// A self-contained page
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecuteFlag {
    /// Calls of read-only tools
    Read,
    /// All calls whose tool has a backing
    All,
    /// No calls
    None,
}

impl From<ExecuteFlag> for ExecutePolicy {
    fn from(flag: ExecuteFlag) -> Self {
        match flag {
            ExecuteFlag::Read => Self::Read,
            ExecuteFlag::All => Self::All,
            ExecuteFlag::None => Self::None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IdsFlag {
    /// New ids may replace recorded ones, consistently one for one
    Rename,
    /// Ids are compared like any other text
    Exact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToolsFormat {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Mcp,
    /// A section to paste into a prompt
    Markdown,
    /// How each tool runs, for people
    Table,
    /// The same for programs
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentLoopLanguage {
    /// A POSIX shell, with curl and jq: `agent.sh`
    Sh,
    /// Python 3, without packages: `agent.py`
    Python,
    /// TypeScript for Node, without packages: `agent.ts`
    Typescript,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServersFormat {
    /// A table for people
    Text,
    /// One JSON object for programs
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DialectFlag {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    ClaudeCode,
    Codex,
    Toolq,
    /// A Messages API stream
    AnthropicSse,
    /// A chat completions or responses stream
    OpenaiSse,
}

impl DialectFlag {
    /// Returns the vendor of a stream dialect.
    pub fn stream_vendor(self) -> Option<StreamVendor> {
        match self {
            Self::AnthropicSse => Some(StreamVendor::Anthropic),
            Self::OpenaiSse => Some(StreamVendor::OpenAi),
            _ => None,
        }
    }
}

impl From<DialectFlag> for Dialect {
    fn from(dialect: DialectFlag) -> Self {
        match dialect {
            DialectFlag::Anthropic | DialectFlag::AnthropicSse => Self::Anthropic,
            DialectFlag::OpenaiChat | DialectFlag::OpenaiSse => Self::OpenAiChat,
            DialectFlag::OpenaiResponses => Self::OpenAiResponses,
            DialectFlag::ClaudeCode => Self::ClaudeCode,
            DialectFlag::Codex => Self::Codex,
            DialectFlag::Toolq => Self::Toolq,
        }
    }
}

/// What `toolq call` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallFormat {
    /// The result as the model reads it
    Text,
    /// The whole conversation of an agent, in the format of its API
    Messages,
    /// The result for programs: with status, error, duration, and attempts; of an agent with turns, tokens, and cost
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormFlag {
    /// An Anthropic user message
    Message,
    /// An array of Anthropic blocks
    Blocks,
    /// One block per line, each printed as soon as it and all before it are ready
    BlockLines,
    /// An array of `role: tool` messages
    OpenaiChat,
    /// An array of `function_call_output` items
    OpenaiResponses,
    /// An array of results for programs: with status, error, duration, and attempts
    Results,
    /// One such result per line, each printed as soon as it and all before it are ready
    ResultLines,
}

impl From<FormFlag> for AnswerForm {
    fn from(form: FormFlag) -> Self {
        match form {
            FormFlag::Message => Self::Message,
            FormFlag::Blocks => Self::Blocks,
            FormFlag::BlockLines => Self::BlockLines,
            FormFlag::OpenaiChat => Self::OpenAiChat,
            FormFlag::OpenaiResponses => Self::OpenAiResponses,
            FormFlag::Results => Self::Results,
            FormFlag::ResultLines => Self::ResultLines,
        }
    }
}

/// Parses the value of `--http`. Names aren't resolved: what a name means may change.
pub fn parse_http_address(text: &str) -> Result<SocketAddr, &'static str> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse()
        .map_err(|_| "must be an IP address or `localhost`, and a port, such as 127.0.0.1:8080 or [::1]:8080")
}

/// Parses the value of `--jobs`.
pub fn parse_jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse()
        .map_err(|_| "must be a whole number, 1 or more")
}

/// Parses the time after which a turn goes to another worker. A shorter one would end while a healthy worker renews it.
pub fn parse_ack_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_duration(text)?;
    if wait < Duration::from_secs(1) {
        return Err("must be 1s or longer".to_owned());
    }
    Ok(wait)
}
