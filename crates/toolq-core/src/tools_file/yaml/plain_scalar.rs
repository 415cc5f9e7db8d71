//! Scalars without quotes, as the core schema of YAML 1.2 reads them (section 10.3.2): `no` and `012` are text. Numbers must
//! be able to keep all their digits.

use serde_json::Number;

use crate::json::rounded_integer;
use crate::tools_file::yaml::tree::YamlContent;
use crate::types::{FileProblem, Span};

/// Returns what the scalar is; `None` if it is a number that JSON doesn't have.
pub(super) fn read_plain_scalar(text: &str) -> Option<YamlContent> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => YamlContent::Null,
        "true" | "True" | "TRUE" => YamlContent::Bool(true),
        "false" | "False" | "FALSE" => YamlContent::Bool(false),
        _ => match (read_integer(text), read_float(text)) {
            (Some(integer), _) => YamlContent::Number(integer),
            (None, Some(float)) => YamlContent::Number(Number::from_f64(float)?),
            (None, None) => YamlContent::Text(text.to_owned()),
        },
    })
}

/// Returns the integer that `text` is, if 64 bits hold it.
fn read_integer(text: &str) -> Option<Number> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let integer = u64::from_str_radix(digits, radix).ok().map(Number::from);
            return integer.filter(|_| digits.chars().all(|digit| digit.is_digit(radix)));
        }
    }
    if !is_decimal_integer(text) {
        return None;
    }
    let signed = text.strip_prefix('+').unwrap_or(text);
    let positive = signed.parse::<u64>().map(Number::from);
    positive
        .or_else(|_| signed.parse::<i64>().map(Number::from))
        .ok()
}

/// Whether `text` is a sign and digits, without zeros before them.
fn is_decimal_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let begins_with_zero = digits.starts_with('0') && digits.len() > 1;
    !digits.is_empty() && !begins_with_zero && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the float that `text` is, which also holds larger integers, or infinity for what isn't a number.
fn read_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if [".inf", ".nan"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
    {
        return Some(f64::INFINITY);
    }
    let begins_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_of_float = |byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    let is_of_digits = unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let is_float = begins_number && unsigned.bytes().all(is_of_float);
    if !is_float || is_of_digits && !is_decimal_integer(text) {
        return None;
    }
    text.parse().ok()
}

/// Returns the problem of an integer that `content` only holds rounded.
pub(super) fn find_rounding(text: &str, span: Span, content: &YamlContent) -> Option<FileProblem> {
    let YamlContent::Number(number) = content else {
        return None;
    };
    let float = rounded_integer(text).filter(|_| number.is_f64())?;
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
