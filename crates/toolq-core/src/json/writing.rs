//! Writes JSON: as the text that stands for its meaning, on indented lines, and with edits.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::json::decimal::Decimal;
use crate::json::value::{JsonKind, JsonText, find_string_end};

/// Returns the SHA-256 of what a JSON value means: white space, the order of keys, escapes, and how a number is written make no
/// difference. Numbers count by their exact decimal value.
pub fn meaning_digest(json: JsonText<'_>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hash_value(&mut hasher, json);
    hasher.finalize().into()
}

fn hash_value(hasher: &mut Sha256, json: JsonText<'_>) {
    let is_hashed = match json.kind() {
        JsonKind::Object => hash_object(hasher, json),
        JsonKind::Array => hash_array(hasher, json),
        JsonKind::String => json
            .to_text()
            .map(|text| hash_bytes(hasher, b's', text.as_bytes())),
        JsonKind::Number => {
            Decimal::parse(json.get()).map(|number| hash_bytes(hasher, b'n', &number.to_bytes()))
        }
        JsonKind::Boolean | JsonKind::Null => None,
    };
    // Also a number beyond all bounds, and a text with half a surrogate pair: they mean what is written.
    if is_hashed.is_none() {
        hash_bytes(hasher, b'v', json.get().as_bytes());
    }
}

fn hash_object(hasher: &mut Sha256, json: JsonText<'_>) -> Option<()> {
    let object = json.object()?;
    let mut members: Vec<_> = object.members().iter().collect();
    members.sort_by(|(key, _), (other, _)| key.cmp(other));
    hash_bytes(hasher, b'o', &members.len().to_le_bytes());
    for (key, value) in members {
        hash_bytes(hasher, b'k', key.as_bytes());
        hash_value(hasher, *value);
    }
    Some(())
}

fn hash_array(hasher: &mut Sha256, json: JsonText<'_>) -> Option<()> {
    let elements = json.elements()?;
    hash_bytes(hasher, b'a', &elements.len().to_le_bytes());
    for element in elements {
        hash_value(hasher, element);
    }
    Some(())
}

/// Hashes bytes so that nothing else is hashed in the same way.
fn hash_bytes(hasher: &mut Sha256, tag: u8, bytes: &[u8]) {
    hasher.update([tag]);
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

// Whitespace of JSON that people read.

/// Puts JSON, or the beginning of it, on one line. Strings have no line breaks, so they stay as they are.
pub fn join_json_lines(json: &str) -> Cow<'_, str> {
    let is_break = |c: char| matches!(c, '\n' | '\r');
    if !json.contains(is_break) {
        return Cow::Borrowed(json);
    }
    let lines = json.split(is_break).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    Cow::Owned(lines.join(" "))
}

/// Indents `compact`, which must be one valid JSON value. Only whitespace changes; digits and escapes are preserved.
pub fn indent_json(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0_usize;
    let mut rest = compact;
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '"' => find_string_end(rest.as_bytes(), 1).unwrap_or(rest.len()),
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        match c {
            '{' | '[' if after.trim_start().starts_with(['}', ']']) => out.push(c),
            '{' | '[' => {
                depth += 1;
                out.push(c);
                push_line_break(&mut out, depth);
            }
            '}' | ']' if out.ends_with(['{', '[']) => out.push(c),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                push_line_break(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                push_line_break(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\t' | '\r' | '\n' => {}
            _ => out.push_str(token),
        }
        rest = after;
    }
    out
}

fn push_line_break(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

// Edits to the text of a JSON value. Every byte that isn't edited is kept.

/// Replacements and insertions in one text, collected in text order.
#[derive(Debug)]
pub(crate) struct JsonEdits<'t> {
    text: &'t str,
    edits: Vec<JsonEdit>,
}

/// New text for a range of bytes.
#[derive(Debug)]
struct JsonEdit {
    range: Range<usize>,
    replacement: String,
}

impl<'t> JsonEdits<'t> {
    /// Starts to edit `text`.
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            edits: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Replaces `value`, which must be a part of the text, after all edits so far.
    pub(crate) fn replace(&mut self, value: JsonText<'t>, replacement: String) {
        let range = self.range_of(value);
        self.edits.push(JsonEdit { range, replacement });
    }

    /// Inserts text before the last byte of `value`, its closing bracket.
    pub(crate) fn insert_at_end(&mut self, value: JsonText<'t>, replacement: String) {
        let end = self.range_of(value).end - 1;
        self.edits.push(JsonEdit {
            range: end..end,
            replacement,
        });
    }

    /// Returns the edited text.
    pub(crate) fn apply(self) -> String {
        let mut edited = String::with_capacity(self.text.len());
        let mut copied_up_to = 0;
        for edit in self.edits {
            edited.push_str(&self.text[copied_up_to..edit.range.start]);
            edited.push_str(&edit.replacement);
            copied_up_to = edit.range.end;
        }
        edited.push_str(&self.text[copied_up_to..]);
        edited
    }

    /// Returns the bytes of the text that `value` borrows.
    fn range_of(&self, value: JsonText<'t>) -> Range<usize> {
        let start = value.get().as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + value.get().len()
    }
}

// JSON that is written piece by piece.

/// A list whose elements are made while it is written, one at a time: a turn may have many.
pub(crate) struct EachOf<I>(pub(crate) I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for EachOf<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

// JSON that can't fail to be made.

/// Takes the JSON of a value that can always be serialized: text, a number, raw JSON, or an object whose keys are
/// texts.
///
/// # Panics
/// The value couldn't be serialized, which is a bug. An empty text in its place could be mistaken for a result.
#[expect(
    clippy::expect_used,
    reason = "a bug that must not pass for an empty line"
)]
pub fn expect_json<T>(made: serde_json::Result<T>) -> T {
    made.expect("texts, numbers and raw JSON always have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &str) -> [u8; 32] {
        meaning_digest(JsonText::new(json))
    }

    #[test]
    fn the_same_value_has_the_same_digest_however_it_is_written() {
        for (json, same) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                r#"{ "b" : [ true,null ], "a":1 }"#,
            ),
            (r#"{"\u0061":"\u00e9\/"}"#, r#"{"a":"é/"}"#),
            ("100.0", "100"),
            ("1e2", "100"),
            ("-0.0", "0"),
            (
                "123456789012345678901234567890",
                "1.2345678901234567890123456789e29",
            ),
        ] {
            assert_eq!(digest(json), digest(same), "{json} {same}");
        }
    }

    #[test]
    fn other_values_have_other_digests() {
        let values = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "\"1\"",
            "\"\"",
            "[]",
            "{}",
            "[[]]",
            "[1]",
            "[1,1]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"b":1}"#,
            r#"{"a":1,"b":{}}"#,
            r#"{"a":{"b":1}}"#,
            "1234567890123456789",
            "1234567890123456788",
            "1e400",
            "1e99999999999999999999",
            r#""\ud800""#,
            r#""\ud801""#,
        ];
        let digests: std::collections::HashSet<_> =
            values.iter().map(|json| digest(json)).collect();
        assert_eq!(digests.len(), values.len());
    }
}

#[cfg(test)]
mod pretty_tests {

    use crate::json::writing::{indent_json, join_json_lines};

    #[test]
    fn lines_are_joined_and_strings_kept() {
        for (json, joined) in [
            (r#"{"a": "b  c"}"#, r#"{"a": "b  c"}"#),
            (
                "{\n  \"a\": \"b  \\n c\",\r\n\n  \"d\": 1.0\n}\n",
                r#"{ "a": "b  \n c", "d": 1.0 }"#,
            ),
            ("{\n  \"a\": \"b ", "{ \"a\": \"b"),
        ] {
            assert_eq!(join_json_lines(json), joined);
        }
    }

    #[test]
    fn only_whitespace_changes() {
        let compact = r#"{"a":[1.0,12345678901234567890123,"x, {y}: \"z\" \\"],"b":{},"c":[],"d":{"e":null}}"#;
        let shown = indent_json(compact);
        assert_eq!(
            shown,
            "{\n  \"a\": [\n    1.0,\n    12345678901234567890123,\n    \"x, {y}: \\\"z\\\" \\\\\"\n  ],\n  \"b\": {},\n  \"c\": [],\n  \"d\": {\n    \"e\": null\n  }\n}"
        );
        let again: String = indent_json(&shown);
        assert_eq!(again, shown);
    }
}

#[cfg(test)]
mod expect_json_tests {
    use std::collections::BTreeMap;

    use super::expect_json;

    #[test]
    fn a_value_without_a_json_form_is_no_empty_line() {
        assert_eq!(expect_json(serde_json::to_string(&["a"])), r#"["a"]"#);
        let formless = BTreeMap::from([([1], 1)]);
        let made = std::panic::catch_unwind(|| expect_json(serde_json::to_string(&formless)));
        assert!(made.is_err());
    }
}
