use std::borrow::Cow;

/// A JSON text as a part of one line, its meaning unchanged: digits and the order of keys stay.
///
/// A text that came with line breaks loses the space between its values; JSON allows no break inside a string. NEL,
/// U+2028 and U+2029, at which some readers also end a line, can only stand inside a string and become its escapes.
pub fn json_line(json: &str) -> Cow<'_, str> {
    if !json.contains(breaks_line) {
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

fn breaks_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 122: no input ends the line it stands in.
    #[test]
    fn one_line_and_the_same_value() {
        let json = "{\r\n  \"a b\": \"\\\\\\\" x\u{2028}y\u{2029}\u{85}\", \"n\": 1.0\n}";
        let line = json_line(json);
        assert_eq!(line, r#"{"a b":"\\\" x\u2028y\u2029\u0085","n":1.0}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&line), value(json));
        assert!(matches!(json_line("{}"), Cow::Borrowed(_)));
    }
}
