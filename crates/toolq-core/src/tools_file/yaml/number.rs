//! Numbers as YAML 1.2 has them (its core schema, section 10.3.2), in tools.yaml with all their digits.

use serde_json::Number;

use crate::json::rounded_integer;
use crate::types::{FileProblem, Span};

/// Returns whether a plain scalar is a number. The library also takes `0b101`, `0X1F` and `-0x1F` for numbers.
pub(crate) fn is_number(source: &str) -> bool {
    let all = |digits: &str, is_digit: fn(&u8) -> bool| {
        !digits.is_empty() && digits.as_bytes().iter().all(is_digit)
    };
    if let Some(digits) = source.strip_prefix("0o") {
        return all(digits, |digit| matches!(digit, b'0'..=b'7'));
    }
    if let Some(digits) = source.strip_prefix("0x") {
        return all(digits, u8::is_ascii_hexdigit);
    }
    let is_of_decimal = |byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    // The library has read these as a number, so they are in an order that makes one. `.inf` isn't, but JSON has none.
    source.bytes().all(is_of_decimal)
}

/// Returns the problem of the integer at `span`, if `number` only holds it rounded.
pub(crate) fn find_rounding(source: &str, span: Span, number: &Number) -> Option<FileProblem> {
    let float = rounded_integer(source).filter(|_| number.is_f64())?;
    let problem = FileProblem::error(
        span,
        "an integer beyond 64 bits can't keep its digits here",
        "would be rounded",
    );
    Some(problem.with_hint(format!(
        "put it in quotes if it may be text, or write `{float:e}` if the rounded number will do"
    )))
}

#[cfg(test)]
mod tests {
    use crate::tools_file::yaml::parse_yaml;

    /// A wrong digit in an `enum`, `const` or `default` would be a different value.
    #[test]
    fn integers_that_would_lose_digits_are_refused() {
        for integer in [
            "18446744073709551616",
            "18446744073709551617",
            "-9223372036854775809",
            "+12345678901234567890123",
        ] {
            let problems = parse_yaml(&format!("a: [{integer}]")).expect_err(integer);
            let span = problems[0].span;
            assert_eq!((span.start, span.len), (4, integer.len()), "{integer}");
        }
        for number in [
            "18446744073709551615",
            "-9223372036854775808",
            "10000000000000000000000",
            "1.2345678901234567890123",
            "1.2345678901234568e22",
            "\"12345678901234567890123\"",
        ] {
            assert!(parse_yaml(&format!("a: [{number}]")).is_ok(), "{number}");
        }
    }
}
