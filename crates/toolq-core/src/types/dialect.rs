use std::fmt;

/// The wire form of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Messages API: a response, message, request, block or array of blocks.
    Anthropic,
    /// Chat completions: `tool_calls`, arguments as a JSON string.
    OpenAiChat,
    /// Responses: `function_call` items, answered by `call_id`.
    OpenAiResponses,
    /// A Claude Code session log: JSONL, one content block a line.
    ClaudeCode,
    /// A Codex rollout: JSONL of `response_item` lines.
    Codex,
    /// A session log of toolq's own.
    Toolq,
}

impl Dialect {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::ClaudeCode,
        Self::Codex,
        Self::Toolq,
    ];

    /// The name that `--from` takes.
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

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The form of the results of one turn. What was asked in a form is answered in it, unless `--to` says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `{"role":"user","content":[{"type":"tool_result",…}]}`
    Message,
    /// An array of `tool_result` blocks.
    Blocks,
    /// One `tool_result` block by itself: the answer to one `tool_use` block by itself.
    Block,
    /// One `tool_result` block a line, each as soon as it and all before it are there.
    BlockLines,
    /// An array of `{"role":"tool",…}` messages.
    OpenAiChat,
    /// An array of `function_call_output` items.
    OpenAiResponses,
}

/// How the turns of an input stand together, and so how their answers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One JSON document: all open turns are answered by one document.
    Document,
    /// Values one after another (JSONL, session logs): one line a turn.
    Lines,
}
