//! Checks that the APIs accept the name of a tool.

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
