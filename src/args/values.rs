//! The words that an option takes, and what each means to the stages.

use clap::ValueEnum;

use crate::replay::Execute;
use toolq_core::transcript::Vendor;
use toolq_core::types::{Dialect, Form};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sync {
    Auto,
    All,
}

impl From<Sync> for toolq_log::Sync {
    fn from(sync: Sync) -> Self {
        match sync {
            Sync::Auto => Self::Auto,
            Sync::All => Self::All,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// A bar on a terminal, lines where CI is set, else nothing but the summary
    Auto,
    /// A bar; lines where stderr is no terminal
    Bar,
    /// A line for each thing that happens
    Plain,
    /// Nothing
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people: a timeline
    Text,
    /// One object a line and turn
    Json,
    /// A diagram for a page that renders mermaid
    Mermaid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecuteFlag {
    /// Those of tools that only read
    Read,
    /// All that have a backing
    All,
    /// None
    None,
}

impl From<ExecuteFlag> for Execute {
    fn from(flag: ExecuteFlag) -> Self {
        match flag {
            ExecuteFlag::Read => Self::Read,
            ExecuteFlag::All => Self::All,
            ExecuteFlag::None => Self::None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ids {
    /// They may be others, one for one
    Rename,
    /// They are compared like any text
    Exact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToolsFormat {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Mcp,
    /// A section for a prompt
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FromDialect {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    ClaudeCode,
    Codex,
    Toolq,
    /// A stream of the Messages API
    AnthropicSse,
    /// A stream of chat completions or responses
    OpenaiSse,
}

impl FromDialect {
    /// Whose stream it is, if it is one.
    pub fn vendor(self) -> Option<Vendor> {
        match self {
            Self::AnthropicSse => Some(Vendor::Anthropic),
            Self::OpenaiSse => Some(Vendor::OpenAi),
            _ => None,
        }
    }
}

impl From<FromDialect> for Dialect {
    fn from(dialect: FromDialect) -> Self {
        match dialect {
            FromDialect::Anthropic | FromDialect::AnthropicSse => Self::Anthropic,
            FromDialect::OpenaiChat | FromDialect::OpenaiSse => Self::OpenAiChat,
            FromDialect::OpenaiResponses => Self::OpenAiResponses,
            FromDialect::ClaudeCode => Self::ClaudeCode,
            FromDialect::Codex => Self::Codex,
            FromDialect::Toolq => Self::Toolq,
        }
    }
}

/// What `toolq agent` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToAnswer {
    /// The answer
    Text,
    /// The whole conversation, in the form of the agent's API
    Messages,
    /// The answer with what it took: turns, tokens, cost
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToForm {
    /// An Anthropic user message
    Message,
    /// An array of Anthropic blocks
    Blocks,
    /// One block a line, each as soon as it and all before it are there
    BlockLines,
    /// An array of `role: tool` messages
    OpenaiChat,
    /// An array of `function_call_output` items
    OpenaiResponses,
}

impl From<ToForm> for Form {
    fn from(form: ToForm) -> Self {
        match form {
            ToForm::Message => Self::Message,
            ToForm::Blocks => Self::Blocks,
            ToForm::BlockLines => Self::BlockLines,
            ToForm::OpenaiChat => Self::OpenAiChat,
            ToForm::OpenaiResponses => Self::OpenAiResponses,
        }
    }
}
