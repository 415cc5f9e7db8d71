/// Indents `compact`, which is one valid JSON value. Only white space moves, so that digits and escapes stay.
pub fn pretty(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0_usize;
    let mut rest = compact;
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '"' => string_len(rest),
            _ => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(len);
        match c {
            '{' | '[' if behind.trim_start().starts_with(['}', ']']) => out.push(c),
            '{' | '[' => {
                depth += 1;
                out.push(c);
                new_line(&mut out, depth);
            }
            '}' | ']' if out.ends_with(['{', '[']) => out.push(c),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\t' | '\r' | '\n' => {}
            _ => out.push_str(token),
        }
        rest = behind;
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// The bytes of the string that `text` begins with, both quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {

    use crate::json::pretty::pretty;

    #[test]
    fn only_white_space_moves() {
        let compact = r#"{"a":[1.0,12345678901234567890123,"x, {y}: \"z\" \\"],"b":{},"c":[],"d":{"e":null}}"#;
        let shown = pretty(compact);
        assert_eq!(
            shown,
            "{\n  \"a\": [\n    1.0,\n    12345678901234567890123,\n    \"x, {y}: \\\"z\\\" \\\\\"\n  ],\n  \"b\": {},\n  \"c\": [],\n  \"d\": {\n    \"e\": null\n  }\n}"
        );
        let again: String = pretty(&shown);
        assert_eq!(again, shown);
    }
}
