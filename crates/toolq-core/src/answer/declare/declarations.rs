//! Renders tools for a model: as the declarations that each API expects, or as a prompt section.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::answer::declare::markdown;
use crate::json_schema::find_schema_errors;
use crate::types::{Backing, Effect, Tool, ToolsConfig};

/// A format of tool declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclarationFormat {
    /// `tools` of a Messages API request.
    Anthropic,
    /// `tools` of a chat completions request.
    OpenAiChat,
    /// `tools` of a responses request.
    OpenAiResponses,
    /// `tools` of a request to Gemini.
    Gemini,
    /// `toolConfig` of a Converse request.
    Bedrock,
    /// The result of MCP's `tools/list`.
    Mcp,
    /// A prompt section.
    Markdown,
}

impl DeclarationFormat {
    /// All formats, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
        Self::Bedrock,
        Self::Mcp,
        Self::Markdown,
    ];

    /// The name that `--format` accepts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Mcp => "mcp",
            Self::Markdown => "markdown",
        }
    }

    /// Returns the format of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Renders the declarations of all tools whose schemas are known, in the order of the file: compact JSON or Markdown, without a trailing
/// newline.
pub fn render_declarations(tools: &ToolsConfig, format: DeclarationFormat) -> String {
    let mut known = tools.known_tools();
    known.retain(|tool| !tool.awaits_list);
    let declare_all = |of: fn(&Tool) -> Value| known.iter().map(|tool| of(tool)).collect::<Value>();
    match format {
        DeclarationFormat::Anthropic => declare_all(anthropic_declaration).to_string(),
        DeclarationFormat::OpenAiChat => declare_all(openai_chat_declaration).to_string(),
        DeclarationFormat::OpenAiResponses => declare_all(openai_responses_declaration).to_string(),
        DeclarationFormat::Gemini => {
            json!([{ "functionDeclarations": declare_all(gemini_declaration) }]).to_string()
        }
        DeclarationFormat::Bedrock => {
            json!({ "tools": declare_all(bedrock_declaration) }).to_string()
        }
        DeclarationFormat::Mcp => json!({ "tools": declare_all(mcp_declaration) }).to_string(),
        DeclarationFormat::Markdown => markdown::render_section(&known),
    }
}

fn declare_name(tool: &Tool) -> Value {
    let mut declaration = json!({"name": tool.name});
    add_description(&mut declaration, tool);
    declaration
}

/// Adds the description, if there is one: an empty one says nothing to a model.
fn add_description(declaration: &mut Value, tool: &Tool) {
    if !tool.description().is_empty() {
        declaration["description"] = tool.description().into();
    }
}

fn anthropic_declaration(tool: &Tool) -> Value {
    let mut declaration = declare_name(tool);
    declaration["input_schema"] = tool.input_schema().clone();
    declaration
}

fn openai_chat_declaration(tool: &Tool) -> Value {
    let mut function = declare_name(tool);
    function["parameters"] = tool.input_schema().clone();
    json!({"type": "function", "function": function})
}

/// The API treats schemas as strict by default, and strict schemas are a small subset of JSON Schema.
fn openai_responses_declaration(tool: &Tool) -> Value {
    let mut declaration = json!({"type": "function", "name": tool.name});
    add_description(&mut declaration, tool);
    declaration["parameters"] = tool.input_schema().clone();
    declaration["strict"] = false.into();
    declaration
}

/// `parameters` would take only a part of JSON Schema.
fn gemini_declaration(tool: &Tool) -> Value {
    let mut declaration = declare_name(tool);
    declaration["parametersJsonSchema"] = tool.input_schema().clone();
    declaration
}

fn bedrock_declaration(tool: &Tool) -> Value {
    let mut spec = declare_name(tool);
    spec["inputSchema"] = json!({ "json": tool.input_schema() });
    json!({ "toolSpec": spec })
}

/// Returns the schema of the tool's own output, or else of the structured content that its server answers with.
fn output_schema(tool: &Tool) -> Option<&Value> {
    let own = tool.output_schema.as_ref().map(|schema| schema.source());
    own.or_else(|| match &tool.backing {
        Some(Backing::Mcp(backing)) => {
            let schema = backing.lock.as_ref()?.definition.output_schema.as_ref()?;
            // One that can't be used describes nothing to clients, either.
            let problems = find_schema_errors(schema);
            problems.is_empty().then_some(schema)
        }
        _ => None,
    })
}

/// Returns the declaration of a tool for an MCP client. MCP expresses a tool's effect as hints.
pub fn mcp_declaration(tool: &Tool) -> Value {
    let title = tool.display_name.as_ref().unwrap_or(&tool.name);
    let mut declaration = json!({"name": tool.name, "title": title});
    add_description(&mut declaration, tool);
    declaration["inputSchema"] = tool.input_schema().clone();
    if let Some(schema) = output_schema(tool) {
        declaration["outputSchema"] = schema.clone();
    }
    declaration["annotations"] = json!({
        "readOnlyHint": tool.effect == Effect::Read,
        "idempotentHint": tool.effect != Effect::Write,
    });
    for (hint, value) in [
        ("destructiveHint", tool.destructive),
        ("openWorldHint", tool.open_world),
    ] {
        if let Some(value) = value {
            declaration["annotations"][hint] = value.into();
        }
    }
    declaration
}
