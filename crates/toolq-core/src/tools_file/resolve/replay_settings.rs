//! Resolves what `replay` leaves out when it compares the results of a tool.

use crate::tools_file::keys::ToolFile;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::normalizers;
use crate::types::{Compare, IgnorePattern, TextNormalizer};

/// Returns the parts of a result that `replay` ignores. Only JSON has parts.
pub(crate) fn resolve_ignored(
    tool: &ToolFile,
    diagnostics: &mut Diagnostics<'_>,
) -> Vec<IgnorePattern> {
    let compares_whole = matches!(tool.compare.value(), Some(Compare::Exact | Compare::None));
    let mut parts = Vec::new();
    for part in tool.ignore.items() {
        match IgnorePattern::parse(&part.value) {
            Ok(ignored) => parts.push(ignored),
            Err(message) => diagnostics.error(
                part.span,
                message,
                "",
                "`/meta/took_ms` is a path from the top, `//took_ms` a name at any depth",
            ),
        }
        if compares_whole {
            diagnostics.warning(
                part.span,
                "`ignore` does nothing for results that are compared as a whole, or not at all",
                "has no effect",
                "write `compare: json`, or remove `ignore`",
            );
        }
    }
    parts
}

/// Returns what `replay` replaces in the tool's results: its own normalizers, then those of the file.
pub(crate) fn resolve_normalize(
    tool: &ToolFile,
    shared: &[TextNormalizer],
    diagnostics: &mut Diagnostics<'_>,
) -> Vec<TextNormalizer> {
    let mut own = normalizers::resolve_normalizers(&tool.normalize, diagnostics);
    if let (Some(Compare::Schema | Compare::None), Some(normalize)) =
        (tool.compare.value(), tool.normalize.spanned())
    {
        diagnostics.warning(
            normalize.key_span,
            "`normalize` does nothing for results whose texts are not compared",
            "has no effect",
            "write `compare: json` or `compare: exact`, or remove `normalize`",
        );
    }
    own.extend_from_slice(shared);
    own
}
