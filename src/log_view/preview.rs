//! The beginning of an input or an output, as a person may see it.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::log_view::text_layout::Page;
use toolq_core::text::escape;

/// Columns that are left free for what stands before a line.
const BESIDE: usize = 10;
/// Bytes of a text that are looked at for a line: more don't fit on any.
const LINE: usize = 4 << 10;
/// Lines of an output that are shown.
const LINES: usize = 4;

/// The first lines of an output.
#[derive(Debug)]
pub(crate) struct Preview {
    lines: Vec<String>,
    /// Lines that are left out.
    more: usize,
}

/// The beginning of a JSON value on one line.
pub(crate) fn json(value: Option<&RawValue>, page: &Page) -> String {
    match value {
        Some(value) => line(value.get(), page),
        None => "(no JSON object)".to_owned(),
    }
}

/// The beginning of a content on one line.
pub(crate) fn one_line(json: &str, page: &Page) -> String {
    line(&text(json), page)
}

impl Preview {
    /// The beginning of a record's content, or the words in its place.
    pub(super) fn of(content: Result<String, String>, page: &Page) -> Self {
        let text = match content {
            Ok(json) => text(&json),
            Err(words) => format!("({words})"),
        };
        let mut all = text.trim_end_matches('\n').lines();
        Self {
            lines: all
                .by_ref()
                .take(LINES)
                .map(|text| line(text, page))
                .collect(),
            more: all.count(),
        }
    }

    pub(super) fn write(&self, text: &mut String, indent: &str, page: &Page) {
        for line in &self.lines {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", format!("{indent}{line}").trim_end());
        }
        if self.more > 0 {
            let more = match self.more {
                1 => "… 1 more line".to_owned(),
                more => format!("… {more} more lines"),
            };
            let _ = writeln!(text, "{indent}{}", page.dim(&more));
        }
    }
}

/// What a model reads of a content: the text, or its blocks one below the other.
fn text(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(blocks)) => {
            let blocks: Vec<String> = blocks.iter().map(block).collect();
            blocks.join("\n")
        }
        _ => json.to_owned(),
    }
}

fn block(block: &Value) -> String {
    match (&block["type"], &block["text"]) {
        (_, Value::String(text)) => text.clone(),
        (Value::String(kind), _) => format!("({kind})"),
        _ => block.to_string(),
    }
}

/// The text escaped, on one line of the page.
fn line(text: &str, page: &Page) -> String {
    let end = text.floor_char_boundary(LINE);
    page.fit(&escape(&text[..end]), BESIDE)
}
