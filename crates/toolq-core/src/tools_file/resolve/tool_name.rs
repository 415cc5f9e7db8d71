//! Checks that the APIs accept the declaration of a tool.

use serde_json::Value;

use crate::tools_file::resolve::context::ToolContext;
use crate::types::Span;

/// The longest name that any API accepts.
const MAX_TOOL_NAME_BYTES: usize = 128;
/// The longest name that all APIs accept, which is OpenAI's limit.
const MAX_PORTABLE_NAME_BYTES: usize = 64;

/// Checks a name. Every API accepts letters, digits, `_` and `-`. Some accept more, so other visible characters are
/// only a warning.
pub(crate) fn check_tool_name(name: &str, span: Span, context: &mut ToolContext<'_, '_>) {
    let is_portable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_TOOL_NAME_BYTES {
        context.diagnostics.error(
            span,
            "a tool's name must have 1 to 128 characters",
            "",
            "choose another name",
        );
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        context.diagnostics.error(
            span,
            "a tool's name can't contain spaces or control characters",
            "",
            "write `_` instead",
        );
    } else if !name.chars().all(is_portable) {
        context.diagnostics.warning(
            span,
            format!("some APIs reject the name `{name}`"),
            "",
            "letters, digits, `_` and `-` are accepted everywhere",
        );
    } else if name.len() > MAX_PORTABLE_NAME_BYTES {
        context.diagnostics.warning(
            span,
            format!("some APIs reject a name of {} characters", name.len()),
            "",
            "up to 64 are accepted everywhere",
        );
    }
}

/// Keywords that some APIs reject at the top of a schema.
const TOP_KEYWORDS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Checks the schema of a tool's input.
pub(crate) fn check_tool_schema(
    name: &str,
    schema: &Value,
    span: Span,
    context: &mut ToolContext<'_, '_>,
) {
    for keyword in TOP_KEYWORDS {
        if schema.get(keyword).is_some() {
            context.diagnostics.warning(
                span,
                format!("some APIs reject `{keyword}` at the top of the input schema of `{name}`"),
                "",
                "write it into the schema of a property, or leave the check to the tool",
            );
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_portable = |name: &String| {
        let has_letters = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        has_letters && (1..=MAX_PORTABLE_NAME_BYTES).contains(&name.len())
    };
    let mut names = properties
        .into_iter()
        .flat_map(|properties| properties.keys());
    if let Some(property) = names.find(|name| !is_portable(name)) {
        context.diagnostics.warning(
            span,
            format!("some APIs reject the property `{property}` of the input of `{name}`"),
            "",
            "up to 64 letters, digits, `_`, `-` and `.` are accepted everywhere",
        );
    }
}
