//! Renders tools as the declarations that each API expects, or as a prompt section.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::json_schema::find_schema_errors;
use crate::types::{Backing, Effect, Tool, ToolsConfig};

/// A format of tool declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum DeclarationFormat {
    /// `tools` of a Messages API request.
    Anthropic,
    /// `tools` of a chat completions request.
    #[strum(to_string = "openai-chat")]
    OpenAiChat,
    /// `tools` of a responses request.
    #[strum(to_string = "openai-responses")]
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
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name that `--format` accepts.
    pub fn name(self) -> &'static str {
        self.into()
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
        DeclarationFormat::Markdown => render_section(&known),
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

// Renders tools as a prompt section: by category, each with its parameters.

/// Heading for tools without a category, if others have one.
const UNCATEGORIZED_HEADING: &str = "Other";
/// Type of a value about which the schema says nothing.
const ANY_TYPE: &str = "any";
/// Maximum depth of nested fields that are shown.
const MAX_DEPTH: usize = 4;

/// Renders the whole section, without a trailing newline.
pub fn render_section(tools: &[Arc<Tool>]) -> String {
    let mut text = match tools.len() {
        1 => "# Available Tools\n\n1 tool\n".to_owned(),
        count => format!("# Available Tools\n\n{count} tools\n"),
    };
    let mut categories: Vec<Option<&str>> = Vec::new();
    for tool in tools {
        let category = tool.category.as_deref();
        if !categories.contains(&category) {
            categories.push(category);
        }
    }
    let grouped = categories.iter().any(Option::is_some);
    categories.sort_by_key(Option::is_none);
    for category in categories {
        if grouped {
            let _ = write!(text, "\n## {}\n", category.unwrap_or(UNCATEGORIZED_HEADING));
        }
        let heading = if grouped { "###" } else { "##" };
        for tool in tools
            .iter()
            .filter(|tool| tool.category.as_deref() == category)
        {
            write_tool(&mut text, heading, tool);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn write_tool(text: &mut String, heading: &str, tool: &Tool) {
    let display_name = tool
        .display_name
        .as_ref()
        .map_or(String::new(), |name| format!(" ({name})"));
    let _ = write!(text, "\n{heading} {}{display_name}\n", tool.name);
    if !tool.description().is_empty() {
        let _ = write!(text, "\n{}\n", tool.description().trim_end());
    }
    let schema = tool.input_schema();
    let before = text.len();
    text.push_str("\nParameters:\n\n");
    let fields = FieldWriter { root: Some(schema) };
    let empty = text.len();
    fields.write_fields(text, schema, 0);
    if text.len() == empty {
        text.truncate(before);
        text.push_str("\nNo parameters.\n");
    }
}

/// Writes the fields of an input, including nested ones.
#[derive(Clone, Copy)]
struct FieldWriter<'s> {
    /// The document that a `$ref` points into; `None` once one was followed, because its target may contain itself.
    root: Option<&'s Value>,
}

impl<'s> FieldWriter<'s> {
    /// Follows a `$ref` to another schema of the same tool. Returns the target, and the writer for what is inside it.
    fn resolve_ref(self, schema: &'s Value) -> (&'s Value, Self) {
        let mut resolved = (schema, self);
        for _ in 0..MAX_DEPTH {
            let pointer = resolved.0["$ref"]
                .as_str()
                .and_then(|to| to.strip_prefix('#'));
            let target = pointer
                .zip(self.root)
                .and_then(|(pointer, root)| root.pointer(pointer));
            let Some(target) = target else {
                break;
            };
            resolved = (target, Self { root: None });
        }
        resolved
    }

    fn write_fields(self, text: &mut String, schema: &'s Value, depth: usize) {
        let (schema, fields) = self.resolve_ref(schema);
        let Some(properties) = schema["properties"]
            .as_object()
            .filter(|_| depth < MAX_DEPTH)
        else {
            return;
        };
        for (name, property) in properties {
            let required = schema["required"].as_array();
            let required = required.is_some_and(|all| all.iter().any(|one| one == name));
            fields.write_field(text, name, property, required, depth);
            let (resolved, resolved_fields) = fields.resolve_ref(property);
            let items = Some(&resolved["items"]).filter(|items| items.is_object());
            resolved_fields.write_fields(text, items.unwrap_or(resolved), depth + 1);
        }
    }

    fn write_field(
        self,
        text: &mut String,
        name: &str,
        schema: &'s Value,
        required: bool,
        depth: usize,
    ) {
        let need = if required { "required" } else { "optional" };
        let margin = "  ".repeat(depth);
        let _ = write!(
            text,
            "{margin}- `{name}` ({}, {need})",
            self.describe_type(schema, 0)
        );
        let own = schema["description"].as_str();
        let description = own.or_else(|| self.resolve_ref(schema).0["description"].as_str());
        if let Some(description) = description {
            let next = format!("\n{margin}  ");
            let _ = write!(text, ": {}", description.trim_end().replace('\n', &next));
        }
        text.push('\n');
    }

    /// Describes in words what a value may be.
    fn describe_type(self, schema: &'s Value, depth: usize) -> String {
        let (schema, fields) = self.resolve_ref(schema);
        let kind = |schema: &'s Value| fields.describe_type(schema, depth + 1);
        if let Some(values) = schema["enum"].as_array() {
            let values = values.iter().map(Value::to_string);
            return format!("one of {}", join_words(values, ", "));
        }
        if let Some(value) = schema.get("const") {
            return format!("always {value}");
        }
        let schemas_at = |key: &str| schema[key].as_array().filter(|_| depth < MAX_DEPTH);
        if let Some(all) = schemas_at("anyOf").or_else(|| schemas_at("oneOf")) {
            return join_words(all.iter().map(kind), " or ");
        }
        match &schema["type"] {
            Value::String(name) if name == "array" && schema["items"].is_object() => {
                format!("array of {}", kind(&schema["items"]))
            }
            Value::String(name) => name.clone(),
            Value::Array(names) => join_words(names.iter().filter_map(Value::as_str), " or "),
            _ => {
                let parts = schemas_at("allOf").map(|all| all.iter().map(kind));
                let first_known = parts.and_then(|mut parts| parts.find(|part| part != ANY_TYPE));
                first_known.unwrap_or_else(|| ANY_TYPE.to_owned())
            }
        }
    }
}

fn join_words<T: AsRef<str>>(words: impl Iterator<Item = T>, between: &str) -> String {
    let words: Vec<T> = words.collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(between)
}
