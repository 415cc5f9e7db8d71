//! Shortens texts for lines that people read: scripts to their first words, inputs to their beginning.

use unicode_width::UnicodeWidthStr;

use crate::json::{Input, join_json_lines};
use crate::plan::text::PlanStyle;
use crate::text::{escape, truncate_to_columns};
use crate::types::Call;
use redact::Mask;

/// A text with spaces that is wider than this is shown by its first words.
const MAX_ARGUMENT_COLUMNS: usize = 48;
/// Maximum width of these words.
const MAX_FOLDED_COLUMNS: usize = 32;
/// Maximum part of an input that is masked to show its beginning. No secret that begins in the shown part is longer.
const MAX_MASKED_BYTES: usize = 64 << 10;

/// Returns the first words of a text that has several lines, or is too long for a line and has spaces. `None` for others,
/// such as paths.
pub(crate) fn fold_text(text: &str) -> Option<&str> {
    let lines = text.trim_end();
    let line = lines.trim_start().lines().next().unwrap_or_default();
    let has_lines = lines.trim_start().len() > line.len();
    let is_long = text.contains(' ') && line.width() > MAX_ARGUMENT_COLUMNS;
    if !has_lines && !is_long {
        return None;
    }
    if line.width() <= MAX_FOLDED_COLUMNS {
        return Some(line);
    }
    let cut = truncate_to_columns(line, MAX_FOLDED_COLUMNS);
    // It ends with an ellipsis, which isn't part of the text.
    let beginning = &line[..cut.trim_end_matches('…').len()];
    let end = beginning.rfind(' ').filter(|end| *end > 0);
    Some(end.map_or(beginning, |end| beginning[..end].trim_end()))
}

/// Returns the beginning of the input of a call on one line, or nothing for an empty one.
pub(crate) fn short_input(call: &Call, mask: &Mask, columns: usize, style: PlanStyle) -> String {
    let input = call.input.as_ref().map_or("", Input::text);
    if input == "{}" {
        return String::new();
    }
    let beginning = &input[..input.floor_char_boundary(MAX_MASKED_BYTES)];
    let line = join_json_lines(beginning);
    style.truncate(&escape(&mask.apply(&line)), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_folded_and_arguments_are_not() {
        let path = "/a/very/long/path".repeat(10);
        for (text, folded) in [
            ("README.md", None),
            (path.as_str(), None),
            ("a b\n", None),
            ("  set -e\n", None),
            ("set -e\nmake\n", Some("set -e")),
            ("\n\nset -e\nmake\n", Some("set -e")),
            (
                "test \"$ICASE\" = true && set -- -i \"$@\"; exec grep -nH \"$@\"",
                Some("test \"$ICASE\" = true && set --"),
            ),
            (
                "読む 読む 読む 読む 読む 読む 読む 読む 読む 読む 読む",
                Some("読む 読む 読む 読む 読む 読む"),
            ),
        ] {
            assert_eq!(fold_text(text), folded, "{text}");
        }
    }
}
