//! Formats tables with aligned columns.

use std::fmt::Write as _;

use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr as _;

use toolq_core::text::{
    content_text, decode_letters, escape, paint, truncate_to_columns, wrap_words,
};

/// Maximum width of the name column.
const MAX_NAME_COLUMNS: usize = 40;

/// Returns the cell in the first column; `None` is the row for everything together.
pub(crate) fn row_name(name: Option<&str>) -> String {
    match name {
        Some("") => "(no name)".to_owned(),
        Some(name) => truncate_to_columns(&escape(name), MAX_NAME_COLUMNS).into_owned(),
        None => "all".to_owned(),
    }
}

/// Joins columns of equal length into lines. The first cells are titles. There is no trailing newline.
pub(crate) fn render_rows(columns: &[Vec<String>], color: bool) -> String {
    let height = columns.first().map_or(0, Vec::len);
    let rows = (0..height).map(|row| {
        let cells: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
        let line = cells.join("  ");
        match row {
            0 => paint(line.trim_end(), "2", color),
            _ => line.trim_end().to_owned(),
        }
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Returns the title and the cells, padded to the same width.
pub(crate) fn left_aligned(title: &str, cells: Vec<String>) -> Vec<String> {
    aligned(title, cells, |cell, padding| format!("{cell}{padding}"))
}

/// Like [`left_aligned`], but aligned to the right.
pub(crate) fn right_aligned(title: &str, cells: Vec<String>) -> Vec<String> {
    aligned(title, cells, |cell, padding| format!("{padding}{cell}"))
}

fn aligned(title: &str, mut cells: Vec<String>, pad: fn(&str, &str) -> String) -> Vec<String> {
    cells.insert(0, title.to_owned());
    let width = cells.iter().map(|cell| cell.width()).max();
    let width = width.unwrap_or_default();
    for cell in &mut cells {
        *cell = pad(cell, &" ".repeat(width - cell.width()));
    }
    cells
}

// The width and colors of text output.

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct TextLayout {
    /// Width in columns.
    pub width: usize,
    /// Width of the terminal, if there is one: lines are broken only there.
    pub terminal_width: Option<usize>,
    /// Whether to use colors.
    pub color: bool,
    /// Whether inputs and results are shown whole.
    pub is_whole: bool,
}

impl TextLayout {
    pub(super) fn bold(&self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.paint(text, "2")
    }

    pub(super) fn paint(&self, text: &str, style: &str) -> String {
        paint(text, style, self.color)
    }

    /// Returns a layout that is narrower by `columns`.
    pub(super) fn inset(self, columns: usize) -> Self {
        Self {
            width: self.width.saturating_sub(columns),
            ..self
        }
    }

    /// Pads the text to `min_columns`, or truncates it to the width.
    pub(super) fn pad(&self, text: &str, min_columns: usize) -> String {
        let text = truncate_to_columns(text, self.width.max(min_columns));
        let missing = min_columns.saturating_sub(text.width());
        format!("{text}{:missing$}", "")
    }

    /// Breaks a line between words, so that it fits the terminal. Continuation lines are indented.
    pub(super) fn wrap(&self, line: &str, indent: usize) -> String {
        let columns = self.terminal_width.unwrap_or(usize::MAX);
        wrap_words(line, columns, &" ".repeat(indent))
    }

    /// Returns whether a line of `columns` columns fits the terminal.
    pub(super) fn fits(&self, columns: usize) -> bool {
        self.terminal_width.is_none_or(|width| columns <= width)
    }

    /// Truncates the text to what is left of a line after `used_columns`.
    pub(super) fn truncate(&self, text: &str, used_columns: usize) -> String {
        truncate_to_columns(
            text,
            self.width.saturating_sub(used_columns).max(MIN_COLUMNS),
        )
        .into_owned()
    }
}

/// Text isn't truncated to less than this, or nothing useful would be left.
const MIN_COLUMNS: usize = 20;

// Previews of inputs and outputs.

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
            let cut = truncate_to_columns(line, columns);
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
