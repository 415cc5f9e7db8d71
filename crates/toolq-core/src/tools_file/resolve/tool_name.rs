//! The name of a tool, which every API must take.

use crate::tools_file::resolve::context::Scope;
use crate::types::Span;

/// The longest name that any API takes, and the longest that all take: OpenAI's.
const MAX_NAME: usize = 128;
const MAX_EVERYWHERE: usize = 64;

/// Every API takes letters, digits, `_` and `-`; some take more, so that other visible characters are a warning.
pub(crate) fn check_name(name: &str, span: Span, scope: &mut Scope<'_, '_>) {
    let portable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME {
        scope.findings.error(
            span,
            "a tool's name has 1 to 128 characters",
            "",
            "shorten it, or name it",
        );
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        scope.findings.error(
            span,
            "a tool's name has no spaces or control characters",
            "",
            "write `_` instead",
        );
    } else if !name.chars().all(portable) {
        scope.findings.warning(
            span,
            format!("some APIs refuse the name `{name}`"),
            "",
            "letters, digits, `_` and `-` are taken everywhere",
        );
    } else if name.len() > MAX_EVERYWHERE {
        scope.findings.warning(
            span,
            format!("some APIs refuse a name of {} characters", name.len()),
            "",
            "64 are taken everywhere",
        );
    }
}
