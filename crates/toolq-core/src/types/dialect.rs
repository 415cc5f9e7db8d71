//! The wire formats that toolq reads and writes.

use std::fmt;

use crate::types::agent::Api;

/// The wire format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Anthropic Messages API: a response, message, request, content block, or array of blocks.
    Anthropic,
    /// OpenAI chat completions: `tool_calls`, with arguments as a JSON string.
    OpenAiChat,
    /// OpenAI responses: `function_call` items, answered by `call_id`.
    OpenAiResponses,
    /// A Claude Code session log: JSONL with one content block per line.
    ClaudeCode,
    /// A Codex rollout: JSONL of `response_item` lines.
    Codex,
    /// A toolq session log.
    Toolq,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::ClaudeCode,
        Self::Codex,
        Self::Toolq,
    ];

    /// The value that `--from` accepts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Toolq => "toolq",
        }
    }
}

/// The dialect of an API's responses.
impl From<Api> for Dialect {
    fn from(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic,
            Api::OpenAiChat => Self::OpenAiChat,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The form of the results of one turn. It mirrors the form of the calls, unless `--to` overrides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// `{"role":"user","content":[{"type":"tool_result",…}]}`
    Message,
    /// An array of `tool_result` blocks.
    Blocks,
    /// A single `tool_result` block, which answers a single `tool_use` block.
    Block,
    /// One `tool_result` block per line, each written as soon as it and all earlier ones are available.
    BlockLines,
    /// An array of `{"role":"tool",…}` messages.
    OpenAiChat,
    /// An array of `function_call_output` items.
    OpenAiResponses,
    /// An array of results with their statuses, for programs.
    Results,
    /// One such result per line, each written as soon as it and all earlier ones are available.
    ResultLines,
}

impl AnswerForm {
    /// Returns whether each result is a line of its own.
    pub fn has_line_per_result(self) -> bool {
        matches!(self, Self::BlockLines | Self::ResultLines)
    }
}

/// How an input arranges its turns, which determines how the output arranges their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputLayout {
    /// One JSON document: a single document answers all open turns.
    Document,
    /// A sequence of values (JSONL, session logs): one output line per turn.
    Lines,
}
