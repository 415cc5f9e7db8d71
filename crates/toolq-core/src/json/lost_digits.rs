//! Finds integers that would lose digits: JSON trees hold numbers beyond 64 bits as floats.

use crate::json::cursor::find_string_end;

/// Returns the float that a tree holds in place of this integer, if it is printed with other digits. Schemas compare the digits
/// that are printed, so even a power of two beyond 64 bits wouldn't equal itself.
pub(crate) fn rounded_integer(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['+', '-']);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_integer || text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    (float.abs().to_string() != digits).then_some(float)
}

/// Returns which number of a JSON text would lose digits in a tree, as the end of "it has", and what to write instead.
pub fn find_lost_digits(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = find_string_end(bytes, at + 1)?,
            b'-' | b'0'..=b'9' => {
                let rest = &bytes[at..];
                let len = rest.iter().position(|byte| !is_of_number(byte));
                let number = &text[at..at + len.unwrap_or(rest.len())];
                if let Some(rounded) = rounded_integer(number) {
                    return Some(format!(
                        "an integer beyond 64 bits, which would lose digits: {number}; put it in quotes if it may be text, or write `{rounded:e}` if the rounded number will do"
                    ));
                }
                at += number.len();
            }
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_64_bits_are_found_unless_a_float_is_printed_with_their_digits() {
        for text in [
            "18446744073709551616",
            "18446744073709551617",
            r#"{"a\"": [1, -9223372036854775809]}"#,
            r#"["12345678901234567890123", 12345678901234567890123]"#,
        ] {
            assert!(find_lost_digits(text).is_some(), "{text}");
        }
        for text in [
            "[18446744073709551615, -9223372036854775808, 10000000000000000000000]",
            "[1.2345678901234567890123, 1.2345678901234568e22, 5]",
            r#"{"12345678901234567890123": "\"12345678901234567890123"}"#,
            r#"["unfinished 12345678901234567890123"#,
        ] {
            assert_eq!(find_lost_digits(text), None, "{text}");
        }
    }

    #[test]
    fn the_number_and_what_to_write_are_said() {
        let said = find_lost_digits("[12345678901234567890123]").unwrap();
        assert!(said.contains(": 12345678901234567890123;"), "{said}");
        assert!(said.contains("`1.2345678901234568e22`"), "{said}");
    }
}
