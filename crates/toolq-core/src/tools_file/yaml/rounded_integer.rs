//! Refuses integers that would lose digits.

use serde_json::Number;

use crate::json::rounded_integer;
use crate::types::{FileProblem, Span};

/// Returns the problem of the integer at `span` of `text`, if `number` only holds it rounded.
pub(crate) fn find_rounding(text: &str, span: Span, number: &Number) -> Option<FileProblem> {
    let source = text.get(span.start..span.start + span.len)?.trim();
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
            "18446744073709551616",
            "1.2345678901234567890123",
            "1.2345678901234568e22",
            "\"12345678901234567890123\"",
        ] {
            assert!(parse_yaml(&format!("a: [{number}]")).is_ok(), "{number}");
        }
    }
}
