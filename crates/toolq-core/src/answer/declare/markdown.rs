//! Renders tools as a prompt section: by category, each with its parameters.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::types::Tool;

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
