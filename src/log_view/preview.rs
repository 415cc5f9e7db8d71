//! Previews of inputs and outputs.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr as _;

use crate::log_view::text_layout::TextLayout;
use toolq_core::text::escape;

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

/// Returns the text of a result's content, with one line or more per block.
pub(crate) fn content_text(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) if is_json(&text) => decode_letters(&text).into_owned(),
        Ok(Value::String(text)) => text,
        Ok(Value::Array(blocks)) => {
            let blocks: Vec<String> = blocks.iter().map(block_text).collect();
            blocks.join("\n")
        }
        _ => json.to_owned(),
    }
}

fn is_json(text: &str) -> bool {
    text.contains(r"\u") && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Decodes the letters that a JSON text has as `\u5317`, for example because Python wrote it. Other escapes stay.
fn decode_letters(json: &str) -> Cow<'_, str> {
    if !json.contains(r"\u") {
        return Cow::Borrowed(json);
    }
    let mut decoded = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        decoded.push_str(before);
        let (len, letter) = match leading_letter(escape) {
            Some((len, letter)) => (len, Some(letter)),
            // An escaped backslash doesn't begin another escape.
            None => (
                escape
                    .char_indices()
                    .nth(2)
                    .map_or(escape.len(), |(at, _)| at),
                None,
            ),
        };
        match letter {
            Some(letter) => decoded.push(letter),
            None => decoded.push_str(&escape[..len]),
        }
        rest = &escape[len..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Returns the letter that one or two `\uXXXX` escapes at the start encode, and their length.
fn leading_letter(text: &str) -> Option<(usize, char)> {
    let unit = |text: &str| {
        let digits = text.strip_prefix(r"\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(text)?;
    let second = text.get(6..).and_then(unit);
    let units = std::iter::once(first).chain(second);
    let letter = char::decode_utf16(units).next()?.ok()?;
    let is_letter = !letter.is_ascii() && !letter.is_control();
    is_letter.then_some((6 * letter.len_utf16(), letter))
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
    fn letters_are_shown_as_letters() {
        for (json, shown) in [
            (r#"{"city":"\u5317\u4eac"}"#, r#"{"city":"北京"}"#),
            (r#"["\ud83d\ude80"]"#, r#"["🚀"]"#),
            (r#"["\u001b[31m\n\""]"#, r#"["\u001b[31m\n\""]"#),
            (r#"["\\u5317"]"#, r#"["\\u5317"]"#),
            (r#"["\ud83d x \u12"]"#, r#"["\ud83d x \u12"]"#),
            (r#"{"n":1.50}"#, r#"{"n":1.50}"#),
        ] {
            assert_eq!(decode_letters(json), shown);
        }
    }

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

    #[test]
    fn only_json_results_are_decoded() {
        let content = |text: &str| content_text(&Value::from(text).to_string());
        assert_eq!(content(r#"{"a":"\u5317"}"#), r#"{"a":"北"}"#);
        assert_eq!(content(r"C:\u5317"), r"C:\u5317");
    }
}
