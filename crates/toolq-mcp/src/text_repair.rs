//! Repairs text that no JSON parser reads, as official SDKs do: bytes that aren't UTF-8, and halves of surrogate pairs, which
//! programs write that cut a text in the middle of a character.

use std::borrow::Cow;

use memchr::memchr;

/// Replaces a character that can't be read.
const REPLACEMENT: &str = r"\ufffd";
/// The length of an escape like `\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// Returns the line as text, with everything that no parser can read replaced.
pub(crate) fn repair_text(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    match replace_lone_surrogates(&text) {
        Some(repaired) => repaired.into(),
        None => text,
    }
}

fn replace_lone_surrogates(text: &str) -> Option<String> {
    let json = text.as_bytes();
    let mut repaired: Option<String> = None;
    let (mut position, mut copied) = (0, 0);
    while let Some(offset) = memchr(b'\\', &json[position..]) {
        position += offset;
        let is_low = |unit: u16| (0xDC00..0xE000).contains(&unit);
        match escaped_unit(&json[position..]) {
            Some(0xD800..0xDC00)
                if escaped_unit(&json[position + ESCAPE_BYTES..]).is_some_and(is_low) =>
            {
                position += 2 * ESCAPE_BYTES;
            }
            Some(0xD800..0xE000) => {
                let repaired = repaired.get_or_insert_default();
                repaired.push_str(&text[copied..position]);
                repaired.push_str(REPLACEMENT);
                position += ESCAPE_BYTES;
                copied = position;
            }
            Some(_) => position += ESCAPE_BYTES,
            None => position = (position + 2).min(json.len()),
        }
    }
    let mut repaired = repaired?;
    repaired.push_str(&text[copied..]);
    Some(repaired)
}

/// Returns the UTF-16 unit of the escape that `json` begins with.
fn escaped_unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(line: &[u8]) -> Option<String> {
        match repair_text(line) {
            Cow::Owned(repaired) => Some(repaired),
            Cow::Borrowed(_) => None,
        }
    }

    #[test]
    fn only_what_cannot_be_read_is_replaced() {
        for whole in [
            r#"{"a":"\ud83d\uDE00 \\ud83d \u00e4 \\"}"#,
            "ä",
            "",
            "\\",
            r"\u12",
        ] {
            assert_eq!(repaired(whole.as_bytes()), None, "{whole}");
        }
        for (broken, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (
                r#""\uDE00\ud83d\ud83d\ude00""#,
                r#""\ufffd\ufffd\ud83d\ude00""#,
            ),
            (r#""\\\ud83d\n""#, r#""\\\ufffd\n""#),
            (r#""ä\ud83dö\ud83d日""#, r#""ä\ufffdö\ufffd日""#),
            (r#""\ä\ud83d""#, r#""\ä\ufffd""#),
        ] {
            assert_eq!(repaired(broken.as_bytes()).as_deref(), Some(expected));
        }
        assert_eq!(repaired(b"caf\xe9").as_deref(), Some("caf\u{FFFD}"));
    }
}
