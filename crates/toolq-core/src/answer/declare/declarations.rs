//! Tools → what a model is told of them: the declarations of each API, or a section of a prompt.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::answer::declare::markdown;
use crate::types::{Effect, Tool, Tools};

/// How tools are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declare {
    /// `tools` of a Messages API request.
    Anthropic,
    /// `tools` of a chat completions request.
    OpenAiChat,
    /// `tools` of a responses request.
    OpenAiResponses,
    /// The result of MCP's `tools/list`.
    Mcp,
    /// A section of a prompt.
    Markdown,
}

impl Declare {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Mcp,
        Self::Markdown,
    ];

    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Mcp => "mcp",
            Self::Markdown => "markdown",
        }
    }
}

/// The declarations of all tools, in the order of the file: compact JSON, or Markdown; without a line break at its end.
pub fn declare(tools: &Tools, how: Declare) -> String {
    let each = |of: fn(&Tool) -> Value| tools.tools.iter().map(|tool| of(tool)).collect::<Value>();
    match how {
        Declare::Anthropic => each(anthropic).to_string(),
        Declare::OpenAiChat => each(openai_chat).to_string(),
        Declare::OpenAiResponses => each(openai_responses).to_string(),
        Declare::Mcp => json!({ "tools": each(mcp) }).to_string(),
        Declare::Markdown => markdown::section(&tools.tools),
    }
}

fn anthropic(tool: &Tool) -> Value {
    json!({"name": tool.name, "description": tool.description(), "input_schema": tool.input_schema()})
}

fn openai_chat(tool: &Tool) -> Value {
    let function = json!({"name": tool.name, "description": tool.description(), "parameters": tool.input_schema()});
    json!({"type": "function", "function": function})
}

/// The API takes a schema for strict unless told otherwise, and strict schemas are a small part of JSON Schema.
fn openai_responses(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description(),
        "parameters": tool.input_schema(),
        "strict": false,
    })
}

/// MCP declares a tool's effect by hints.
fn mcp(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "title": tool.display_name.as_ref().unwrap_or(&tool.name),
        "description": tool.description(),
        "inputSchema": tool.input_schema(),
        "annotations": {
            "readOnlyHint": tool.effect == Effect::Read,
            "idempotentHint": tool.effect != Effect::Write,
        },
    })
}
