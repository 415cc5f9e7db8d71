//! Compares JSON numbers of any length.

/// Returns whether two JSON numbers are equal to the last digit, however they are written (`1`, `1.0`, `10e-1`).
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || parse_decimal(one).is_some_and(|one| Some(one) == parse_decimal(other))
}

/// Returns whether two numbers differ by at most `tolerance`, absolutely or relative to the larger one.
pub(crate) fn is_near(one: &str, other: &str, tolerance: f64) -> bool {
    let (Ok(one), Ok(other)) = (one.parse::<f64>(), other.parse::<f64>()) else {
        return false;
    };
    let size = one.abs().max(other.abs()).max(1.0);
    size.is_finite() && (one - other).abs() <= tolerance * size
}

/// Returns whether a text is a JSON number.
pub(crate) fn is_number(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    begins && serde_json::from_str::<f64>(text).is_ok()
}

/// A number as its sign, its digits without leading and trailing zeros, and the power of ten of the last digit.
#[derive(Debug, PartialEq, Eq)]
struct DecimalNumber {
    negative: bool,
    digits: String,
    power: i64,
}

/// Parses a JSON number. Returns `None` if its exponent exceeds 32 bits.
fn parse_decimal(number: &str) -> Option<DecimalNumber> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (negative, unsigned) = match mantissa.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, mantissa),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_end_matches('0');
    let power = i64::from(exponent) - i64::try_from(fraction.len()).ok()?
        + i64::try_from(all.len() - digits.len()).ok()?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(DecimalNumber {
            negative: false,
            digits: String::new(),
            power: 0,
        });
    }
    Some(DecimalNumber {
        negative,
        digits: digits.to_owned(),
        power,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_number_are_the_same() {
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.10", "1E-1"),
            ("-0", "0.0"),
            ("-0e7", "0"),
            ("12345678901234567890123", "12345678901234567890123.0"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "-1"),
            ("1", "10"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("0.1", "0.10000000000000000001"),
            ("1e99999999999", "1e99999999998"),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn tolerance_is_absolute_or_relative() {
        assert!(is_near("0.30000000000000004", "0.3", 1e-9));
        assert!(is_near("1000000000000.1", "1000000000000.2", 1e-9));
        assert!(!is_near("1.001", "1", 1e-9) && !is_near("1e999", "2", 1e-9));
        assert!(is_near("0", "0.0000000001", 1e-9));
    }

    #[test]
    fn only_json_numbers_are_numbers() {
        assert!(is_number("1.5") && is_number("-2e3"));
        for text in ["", "01", ".5", "1.", "+1", "nan", "1 2", "true"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
