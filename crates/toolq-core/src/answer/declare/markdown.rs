//! A section of a prompt: the tools by category, each with its parameters.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::types::Tool;

/// The heading of tools without a category, where others have one.
const OTHER: &str = "Other";
/// A value of which nothing is said.
const ANY: &str = "any";
/// How far down is shown what stands in an input.
const DEEPEST: usize = 4;

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
    let before = text.len();
    text.push_str("\nParameters:\n\n");
    let fields = Fields { root: Some(schema) };
    let empty = text.len();
    fields.add(text, schema, 0);
    if text.len() == empty {
        text.truncate(before);
        text.push_str("\nNo parameters.\n");
    }
}

/// The fields of an input, and of what stands inside of it.
#[derive(Clone, Copy)]
struct Fields<'s> {
    /// Where `$ref` leads; none where one was followed already, since what is named there may contain itself.
    root: Option<&'s Value>,
}

impl<'s> Fields<'s> {
    /// The schema that is meant where this one names another of the same tool, and what is followed inside of it.
    fn meant(self, schema: &'s Value) -> (&'s Value, Self) {
        let mut meant = (schema, self);
        for _ in 0..DEEPEST {
            let place = meant.0["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
            let target = place
                .zip(self.root)
                .and_then(|(place, root)| root.pointer(place));
            let Some(target) = target else {
                break;
            };
            meant = (target, Self { root: None });
        }
        meant
    }

    fn add(self, text: &mut String, schema: &'s Value, depth: usize) {
        let (schema, fields) = self.meant(schema);
        let Some(properties) = schema["properties"].as_object().filter(|_| depth < DEEPEST) else {
            return;
        };
        for (name, property) in properties {
            let required = schema["required"].as_array();
            let required = required.is_some_and(|all| all.iter().any(|one| one == name));
            fields.add_one(text, name, property, (required, depth));
            let (inside, of) = fields.meant(property);
            let items = Some(&inside["items"]).filter(|items| items.is_object());
            of.add(text, items.unwrap_or(inside), depth + 1);
        }
    }

    fn add_one(
        self,
        text: &mut String,
        name: &str,
        schema: &'s Value,
        (required, depth): (bool, usize),
    ) {
        let need = if required { "required" } else { "optional" };
        let margin = "  ".repeat(depth);
        let _ = write!(
            text,
            "{margin}- `{name}` ({}, {need})",
            self.kind(schema, 0)
        );
        let own = schema["description"].as_str();
        let description = own.or_else(|| self.meant(schema).0["description"].as_str());
        if let Some(description) = description {
            let next = format!("\n{margin}  ");
            let _ = write!(text, ": {}", description.trim_end().replace('\n', &next));
        }
        text.push('\n');
    }

    /// What a value may be, in words.
    fn kind(self, schema: &'s Value, depth: usize) -> String {
        let (schema, fields) = self.meant(schema);
        let kind = |schema: &'s Value| fields.kind(schema, depth + 1);
        if let Some(values) = schema["enum"].as_array() {
            let values = values.iter().map(Value::to_string);
            return format!("one of {}", listed(values, ", "));
        }
        if let Some(value) = schema.get("const") {
            return format!("always {value}");
        }
        let of = |key: &str| schema[key].as_array().filter(|_| depth < DEEPEST);
        if let Some(all) = of("anyOf").or_else(|| of("oneOf")) {
            return listed(all.iter().map(kind), " or ");
        }
        match &schema["type"] {
            Value::String(name) if name == "array" && schema["items"].is_object() => {
                format!("array of {}", kind(&schema["items"]))
            }
            Value::String(name) => name.clone(),
            Value::Array(names) => listed(names.iter().filter_map(Value::as_str), " or "),
            _ => {
                let parts = of("allOf").map(|all| all.iter().map(kind));
                let said = parts.and_then(|mut parts| parts.find(|part| part != ANY));
                said.unwrap_or_else(|| ANY.to_owned())
            }
        }
    }
}

fn listed<T: AsRef<str>>(words: impl Iterator<Item = T>, between: &str) -> String {
    let words: Vec<T> = words.collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(between)
}
