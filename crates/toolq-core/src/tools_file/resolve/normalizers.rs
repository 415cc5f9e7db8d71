//! Resolves `normalize`.

use crate::tools_file::keys::NormalizeFile;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::spanned::Field;
use crate::types::TextNormalizer;

/// Returns the normalizers of a tool or a file, and reports those that are incomplete or not regular expressions.
pub(crate) fn resolve_normalizers(
    normalize: &Field<Vec<Field<NormalizeFile>>>,
    diagnostics: &mut Diagnostics<'_>,
) -> Vec<TextNormalizer> {
    let mut normalizers = Vec::new();
    for file in normalize.items() {
        let Some(pattern) = file.value.pattern.spanned() else {
            if file.value.pattern.is_missing() {
                diagnostics.error(
                    file.span,
                    "`pattern` is missing",
                    "",
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
                "",
                "see https://docs.rs/regex/latest/regex/#syntax; single quotes keep backslashes as they are",
            ),
        }
    }
    normalizers
}
