//! What people are shown of the content of a result.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::text::format_bytes;

/// The longest input and output that is kept of a call, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Returns the text of a result's content, with one line or more per block.
pub fn content_text(json: &str) -> String {
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
pub fn decode_letters(json: &str) -> Cow<'_, str> {
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

/// Cuts a text off after 16 KiB, and says so.
pub fn keep_beginning(text: String) -> String {
    let (kept, cut) = text.split_at(text.floor_char_boundary(MAX_TEXT_BYTES));
    if cut.is_empty() {
        return text;
    }
    let cut = format_bytes(cut.len() as u64);
    format!("{kept}\n… {cut} more, see `toolq log show --format json`")
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
    fn only_json_results_are_decoded() {
        let content = |text: &str| content_text(&Value::from(text).to_string());
        assert_eq!(content(r#"{"a":"\u5317"}"#), r#"{"a":"北"}"#);
        assert_eq!(content(r"C:\u5317"), r"C:\u5317");
    }
}
