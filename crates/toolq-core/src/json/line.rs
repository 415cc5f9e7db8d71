//! JSON on one line.

use std::borrow::Cow;

/// Puts a JSON text on one line without changing its meaning. Digits and key order are preserved.
///
/// Text with line breaks loses the whitespace between its values; JSON strings can't contain raw line breaks. NEL,
/// U+2028, and U+2029, which some readers treat as line ends, can only occur inside strings and are replaced by their
/// escapes.
pub fn to_json_line(json: &str) -> Cow<'_, str> {
    if !may_contain_line_break(json) || !json.contains(is_line_break) {
        return Cow::Borrowed(json);
    }
    let mut line = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        match c {
            ' ' | '\t' | '\n' | '\r' if !quoted => {}
            '\u{85}' => line.push_str("\\u0085"),
            '\u{2028}' => line.push_str("\\u2028"),
            '\u{2029}' => line.push_str("\\u2029"),
            _ => line.push(c),
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    Cow::Owned(line)
}

/// Looks at every byte without returning early, so that the compiler compares many bytes at a time.
fn may_contain_line_break(text: &str) -> bool {
    // The last two begin NEL, and U+2028 and U+2029, in UTF-8.
    let may_begin_break = |byte: u8| matches!(byte, b'\n' | b'\r' | 0xC2 | 0xE2);
    text.bytes()
        .fold(false, |found, byte| found | may_begin_break(byte))
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No input can end the line that it is written on.
    #[test]
    fn a_json_line_has_no_break_and_the_same_value() {
        let json = "{\r\n  \"a b\": \"\\\\\\\" x\u{2028}y\u{2029}\u{85}\", \"n\": 1.0\n}";
        let line = to_json_line(json);
        assert_eq!(line, r#"{"a b":"\\\" x\u2028y\u2029\u0085","n":1.0}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&line), value(json));
        for unchanged in ["{}", "\"\u{a9} \u{2020} \u{20ac}\""] {
            assert!(matches!(to_json_line(unchanged), Cow::Borrowed(_)));
        }
        for (broken, whole) in [("1\n", "1"), ("\r1", "1"), ("\"\u{85}\"", r#""\u0085""#)] {
            assert_eq!(to_json_line(broken), whole);
        }
    }
}
