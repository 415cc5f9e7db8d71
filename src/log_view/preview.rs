//! Previews of inputs and outputs.

use std::fmt::Write as _;

use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr as _;

use crate::log_view::text_layout::TextLayout;
use toolq_core::text::{content_text, decode_letters, escape};

/// Columns reserved for what precedes a line.
const RESERVED_COLUMNS: usize = 10;
/// How much of a text is considered for a line; more wouldn't fit.
const MAX_LINE_BYTES: usize = 4 << 10;
/// How much of a text is compared with the lines, which may be truncated.
const MAX_COMPARED_BYTES: usize = 12;
/// How much of a line may be lost so that it ends with a whole word.
const MAX_LOST_COLUMNS: usize = 12;
/// Maximum number of lines of an output that are shown.
const MAX_LINES: usize = 4;

/// The first lines of an output.
#[derive(Debug)]
pub(crate) struct OutputPreview {
    lines: Vec<String>,
    /// Number of lines left out.
    omitted_lines: usize,
}

/// Returns the beginning of a JSON value as one line.
pub(crate) fn json_preview(value: Option<&RawValue>, layout: &TextLayout) -> String {
    match value {
        Some(value) => truncate_line(&decode_letters(value.get()), layout),
        None => "(not a JSON object)".to_owned(),
    }
}

/// Returns the beginning of a result's content as one line.
pub(crate) fn content_preview(json: &str, layout: &TextLayout) -> String {
    truncate_line(&content_text(json), layout)
}

impl OutputPreview {
    /// Creates a preview of a record's content, or of the error if it can't be read.
    pub(super) fn new(content: Result<String, String>, layout: &TextLayout) -> Self {
        let text = match content {
            Ok(json) => content_text(&json),
            Err(reason) => format!("({reason})"),
        };
        let mut lines = text.trim_end_matches('\n').lines();
        Self {
            lines: lines
                .by_ref()
                .take(if layout.is_whole {
                    usize::MAX
                } else {
                    MAX_LINES
                })
                .map(|text| truncate_line(text, layout))
                .collect(),
            omitted_lines: lines.count(),
        }
    }

    /// Returns whether a line that is shown has the beginning of `text`.
    pub(super) fn shows(&self, text: &str) -> bool {
        let beginning = escape(&text[..text.floor_char_boundary(MAX_COMPARED_BYTES)]);
        self.lines.iter().any(|line| line.contains(&*beginning))
    }

    pub(super) fn write(&self, text: &mut String, indent: &str, layout: &TextLayout) {
        for line in &self.lines {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{}", format!("{indent}{line}").trim_end());
        }
        if self.omitted_lines > 0 {
            let more = match self.omitted_lines {
                1 => "… 1 more line".to_owned(),
                more => format!("… {more} more lines"),
            };
            let _ = writeln!(text, "{indent}{}", layout.dim(&more));
        }
    }
}

/// Escapes a text and truncates it to one line.
fn truncate_line(text: &str, layout: &TextLayout) -> String {
    if layout.is_whole {
        return escape(text).into_owned();
    }
    let end = text.floor_char_boundary(MAX_LINE_BYTES);
    let line = escape(&text[..end]);
    end_with_word(layout.truncate(&line, RESERVED_COLUMNS), &line)
}

/// Cuts a truncated line after its last whole word, if that is near its end: `call one of the…`.
fn end_with_word(cut: String, line: &str) -> String {
    let Some(kept) = cut.strip_suffix('…').filter(|_| cut != line) else {
        return cut;
    };
    if line[kept.len()..].starts_with(' ') {
        return cut;
    }
    match kept.rsplit_once(' ') {
        Some((words, part)) if part.width() <= MAX_LOST_COLUMNS && !words.trim().is_empty() => {
            format!("{words}…")
        }
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_ends_with_a_word() {
        let line = "call one of the known tools";
        let cut = |columns| {
            let cut = toolq_core::text::truncate_to_columns(line, columns);
            end_with_word(cut.into_owned(), line)
        };
        assert_eq!(cut(27), line);
        assert_eq!(cut(19), "call one of the…");
        assert_eq!(cut(16), "call one of the…");
        let long = "/a/path/without/an/end";
        assert_eq!(
            end_with_word("x /a/path/without…".to_owned(), &format!("x {long}")),
            "x /a/path/without…"
        );
    }
}
