//! What `replay` leaves out when it compares the results of a tool: `ignore` and `normalize`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::sources::Diagnostics;
use crate::tools_file::spanned::Field;
use crate::types::{Compare, IgnorePattern, TextNormalizer};

/// A replacement in texts that `toolq replay` compares.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["pattern"]))]
pub struct NormalizeFile {
    /// Regular expression of what is replaced, without look-around.
    pub pattern: Field<String>,
    /// Text to put in its place; `$1` is the first group. Default: nothing.
    pub with: Field<String>,
}

/// Returns the normalizers of a tool or a file, and reports those that are incomplete or not regular expressions.
pub(crate) fn resolve_normalizers(
    normalize: &Field<Vec<Field<NormalizeFile>>>,
    diagnostics: &mut Diagnostics,
) -> Vec<TextNormalizer> {
    let mut normalizers = Vec::new();
    for file in normalize.items() {
        let Some(pattern) = file.value.pattern.spanned() else {
            if file.value.pattern.is_missing() {
                diagnostics.error(
                    file.span,
                    "`pattern` is missing",
                    "write `{pattern: REGEX, with: TEXT}`",
                );
            }
            continue;
        };
        let replacement = file.value.with.value().map_or("", String::as_str);
        match TextNormalizer::new(&pattern.value, replacement) {
            Ok(normalizer) => normalizers.push(normalizer),
            Err(message) => diagnostics.error(
                pattern.span,
                format!("this isn't a regular expression: {message}"),
                "see https://docs.rs/regex/latest/regex/#syntax; single quotes keep backslashes as they are"),
        }
    }
    normalizers
}

/// Returns the parts of a result that `replay` ignores. Only JSON has parts.
pub(crate) fn resolve_ignored(
    ignore: &Field<Vec<Field<String>>>,
    compare: Compare,
    diagnostics: &mut Diagnostics,
) -> Vec<IgnorePattern> {
    let compares_whole = matches!(compare, Compare::Exact | Compare::None);
    let mut parts = Vec::new();
    for part in ignore.items() {
        match IgnorePattern::parse(&part.value) {
            Ok(ignored) => parts.push(ignored),
            Err(message) => diagnostics.error(
                part.span,
                message,
                "`/meta/took_ms` is a path from the top, `//took_ms` a name at any depth",
            ),
        }
        if compares_whole {
            diagnostics.warning(
                (part.span, "has no effect"),
                "`ignore` does nothing for results that are compared as a whole, or not at all",
                "write `compare: json`, or remove `ignore`",
            );
        }
    }
    parts
}

/// Returns what `replay` replaces in the tool's results: its own normalizers, then those of the file.
pub(crate) fn resolve_normalize(
    field: &Field<Vec<Field<NormalizeFile>>>,
    compare: Compare,
    shared: &[TextNormalizer],
    diagnostics: &mut Diagnostics,
) -> Vec<TextNormalizer> {
    let mut own = resolve_normalizers(field, diagnostics);
    if let (Compare::Schema | Compare::None, Some(span)) = (compare, field.key_span()) {
        diagnostics.warning(
            (span, "has no effect"),
            "`normalize` does nothing for results whose texts are not compared",
            "write `compare: json` or `compare: exact`, or remove `normalize`",
        );
    }
    own.extend_from_slice(shared);
    own
}
