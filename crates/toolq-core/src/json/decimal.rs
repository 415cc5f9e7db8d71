//! Numbers as decimal texts, so that comparing them loses no digits. Exponents are never expanded.

use crate::json::value::find_string_end;

/// A number of any size and precision. Equal numbers have the same parts, however they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    /// The digits without zeros at either end; empty for zero.
    digits: Vec<u8>,
    /// The power of ten of the last digit; 0 for zero.
    exponent: i64,
}

impl Decimal {
    /// Parses a JSON number. Returns `None` if the text isn't one, or if its exponent is beyond 64 bits.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let significant = digits.iter().rposition(|digit| *digit != b'0');
        let kept = significant.map_or(0, |last| last + 1);
        exponent = exponent.checked_add(i64::try_from(digits.len() - kept).ok()?)?;
        digits.truncate(kept);
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..leading);
        let is_zero = digits.is_empty();
        Some(Self {
            is_negative: is_negative && !is_zero,
            exponent: if is_zero { 0 } else { exponent },
            digits,
        })
    }

    /// Returns bytes that only equal numbers share.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let sign = if self.is_negative { b'-' } else { b'+' };
        let parts = [&[sign], &*self.digits, &self.exponent.to_le_bytes()];
        parts.concat()
    }
}

// Finds integers that would lose digits: JSON trees hold numbers beyond 64 bits as floats.

/// Returns the float that a tree holds in place of this integer, if it is printed with other digits.
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
    fn numbers_are_equal_by_value() {
        let different = [
            "-1e400",
            "-9223372036854775809",
            "-9223372036854775808",
            "-1",
            "-1e-400",
            "0",
            "1e-400",
            "0.1",
            "100",
            "100.00000000000000000001",
            "123456789012345678",
            "123456789012345678.5",
            "1e400",
        ];
        for (index, text) in different.iter().enumerate() {
            for (other_index, other) in different.iter().enumerate() {
                let is_equal = Decimal::parse(text).unwrap() == Decimal::parse(other).unwrap();
                assert_eq!(is_equal, index == other_index, "{text} {other}");
            }
        }
        for (text, other) in [
            ("0", "-0.0"),
            ("100", "1E2"),
            ("1.50", "15e-1"),
            ("007", "7"),
        ] {
            assert_eq!(
                Decimal::parse(text),
                Decimal::parse(other),
                "{text} {other}"
            );
        }
        for text in ["", "-", ".", "1e", "x", "1e99999999999999999999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}

#[cfg(test)]
mod lost_digits_tests {
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
