//! Previews of inputs and outputs.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::log_view::text_layout::TextLayout;
use toolq_core::text::escape;

/// Columns reserved for what precedes a line.
const RESERVED_COLUMNS: usize = 10;
/// How much of a text is considered for a line; more wouldn't fit.
const MAX_LINE_BYTES: usize = 4 << 10;
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
        Some(value) => truncate_line(value.get(), layout),
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
                .take(MAX_LINES)
                .map(|text| truncate_line(text, layout))
                .collect(),
            omitted_lines: lines.count(),
        }
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

/// Returns the text of a result's content, with one line or more per block.
fn content_text(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(blocks)) => {
            let blocks: Vec<String> = blocks.iter().map(block_text).collect();
            blocks.join("\n")
        }
        _ => json.to_owned(),
    }
}

fn block_text(block: &Value) -> String {
    match (&block["type"], &block["text"]) {
        (_, Value::String(text)) => text.clone(),
        (Value::String(kind), _) => format!("({kind})"),
        _ => block.to_string(),
    }
}

/// Escapes a text and truncates it to one line.
fn truncate_line(text: &str, layout: &TextLayout) -> String {
    let end = text.floor_char_boundary(MAX_LINE_BYTES);
    layout.truncate(&escape(&text[..end]), RESERVED_COLUMNS)
}
