//! A section of a prompt: the tools by category, each with its parameters.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::model::Tool;

/// The heading of tools without a category, where others have one.
const OTHER: &str = "Other";

/// The whole section, without a line break at its end.
pub fn section(tools: &[Arc<Tool>]) -> String {
    let mut text = "# Available Tools\n".to_owned();
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
            let _ = write!(text, "\n## {}\n", category.unwrap_or(OTHER));
        }
        let heading = if grouped { "###" } else { "##" };
        for tool in tools
            .iter()
            .filter(|tool| tool.category.as_deref() == category)
        {
            add_tool(&mut text, heading, tool);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn add_tool(text: &mut String, heading: &str, tool: &Tool) {
    let shown = tool
        .display_name
        .as_ref()
        .map_or(String::new(), |name| format!(" ({name})"));
    let _ = write!(text, "\n{heading} {}{shown}\n", tool.name);
    if !tool.description().is_empty() {
        let _ = write!(text, "\n{}\n", tool.description().trim_end());
    }
    let schema = tool.input_schema();
    let Some(properties) = schema["properties"]
        .as_object()
        .filter(|all| !all.is_empty())
    else {
        text.push_str("\nNo parameters.\n");
        return;
    };
    text.push_str("\nParameters:\n\n");
    for (name, property) in properties {
        let required = schema["required"].as_array();
        let required = required.is_some_and(|all| all.iter().any(|one| one == name));
        add_parameter(text, name, property, required);
    }
}

fn add_parameter(text: &mut String, name: &str, schema: &Value, required: bool) {
    let need = if required { "required" } else { "optional" };
    let _ = write!(text, "- `{name}` ({}, {need})", kind(schema));
    if let Some(description) = schema["description"].as_str() {
        let _ = write!(text, ": {}", description.trim_end().replace('\n', "\n  "));
    }
    text.push('\n');
}

/// What a value may be, in words.
fn kind(schema: &Value) -> String {
    let alternatives = ["anyOf", "oneOf"]
        .iter()
        .find_map(|key| schema[*key].as_array());
    if let Some(values) = schema["enum"].as_array() {
        return format!(
            "one of {}",
            listed(values.iter().map(Value::to_string), ", ")
        );
    }
    if let Some(all) = alternatives {
        return listed(all.iter().map(kind), " or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" && schema["items"].is_object() => {
            format!("array of {}", kind(&schema["items"]))
        }
        Value::String(name) => name.clone(),
        Value::Array(names) => listed(names.iter().filter_map(Value::as_str), " or "),
        _ => "any".to_owned(),
    }
}

fn listed<T: AsRef<str>>(words: impl Iterator<Item = T>, between: &str) -> String {
    let words: Vec<T> = words.collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(between)
}
