//! Keeps masked JSON valid: what was masked outside a string becomes a string.

use crate::mask::MASKED;

/// Quotes every value outside of strings that contains a mask. `json` was valid JSON before it was masked.
pub(crate) fn quote_masks(json: &str) -> String {
    let mut quoted = String::with_capacity(json.len() + 16);
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => string_len(rest),
            _ => scalar_len(rest).max(first.len_utf8()),
        };
        let (token, tail) = rest.split_at(len);
        let is_masked_scalar = first != '"' && token.contains(MASKED);
        let quote = if is_masked_scalar { "\"" } else { "" };
        quoted.extend([quote, token, quote]);
        rest = tail;
    }
    quoted
}

/// Returns the length of the string that `json` starts with, quotes included.
fn string_len(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Returns the length of the number, literal or mask that `json` starts with; 0 if it starts with another token.
fn scalar_len(json: &str) -> usize {
    let mut len = 0;
    loop {
        let rest = &json[len..];
        if rest.starts_with(MASKED) {
            len += MASKED.len();
        } else if let Some(byte) = rest.bytes().next()
            && (byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            len += 1;
        } else {
            return len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_outside_strings_become_strings() {
        for (masked, expected) in [
            ("[masked]", r#""[masked]""#),
            ("-1[masked]0.5e+3", r#""-1[masked]0.5e+3""#),
            (
                r#"{"a":[masked],"b":[1,[masked], [masked]]}"#,
                r#"{"a":"[masked]","b":[1,"[masked]", "[masked]"]}"#,
            ),
            (
                r#"{"[masked]":"\"[masked]","c":[true,null,"é"]}"#,
                r#"{"[masked]":"\"[masked]","c":[true,null,"é"]}"#,
            ),
            (r#"["\\",[masked]]"#, r#"["\\","[masked]"]"#),
        ] {
            assert_eq!(quote_masks(masked), expected);
            assert!(serde_json::from_str::<serde_json::Value>(expected).is_ok());
        }
    }
}
