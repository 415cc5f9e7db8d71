//! Whitespace of JSON that people read.

use std::borrow::Cow;

use crate::json::cursor::find_string_end;

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

#[cfg(test)]
mod tests {

    use crate::json::pretty::{indent_json, join_json_lines};

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
