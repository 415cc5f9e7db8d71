//! Numbers as decimal texts, so that comparing them loses no digits. Exponents are never expanded.

use std::cmp::Ordering;

/// A number of any size and precision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// The digits without zeros at either end; empty for zero.
    digits: Vec<u8>,
    /// The power of ten of the last digit; 0 for zero.
    exponent: i64,
}

impl Decimal {
    /// Parses a JSON number. Returns `None` if the text isn't one, or if its exponent is beyond 64 bits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
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

    /// Whether the value is a whole number: `1.0` and `1e2` are.
    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Compares two numbers by value.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        // Neither has zeros at its ends, so shorter digits with the same start are smaller.
        let leading_power =
            |number: &Self| i128::from(number.exponent) + number.digits.len() as i128;
        leading_power(self)
            .cmp(&leading_power(other))
            .then_with(|| self.digits.cmp(&other.digits))
    }

    /// Returns whether the number is a multiple of `divisor`, or `None` if the divisor is zero or has more than 37
    /// digits.
    pub(crate) fn is_multiple_of(&self, divisor: &Self) -> Option<bool> {
        let digits = std::str::from_utf8(&divisor.digits).ok()?;
        let modulus: u128 = digits
            .parse()
            .ok()
            .filter(|modulus| *modulus < u128::MAX / 10)?;
        if self.digits.is_empty() {
            return Some(true);
        }
        // The digits don't end in a zero, so no power of ten divides them.
        let Ok(shift) = u64::try_from(self.exponent - divisor.exponent) else {
            return Some(false);
        };
        let mut remainder = self.digits.iter().fold(0_u128, |remainder, digit| {
            (remainder * 10 + u128::from(digit - b'0')) % modulus
        });
        for _ in 0..shift {
            if remainder == 0 {
                break;
            }
            remainder = remainder * 10 % modulus;
        }
        Some(remainder == 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let ascending = [
            "-1e400",
            "-9223372036854775809",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-1e-400",
            "0",
            "1e-400",
            "0.00000000000000000001",
            "0.1",
            "99.99999999999999999999",
            "100",
            "100.00000000000000000001",
            "123456789012345678",
            "123456789012345678.5",
            "1e400",
        ];
        for (low, text) in ascending.iter().enumerate() {
            for (high, other) in ascending.iter().enumerate() {
                assert_eq!(decimal(text).compare(&decimal(other)), low.cmp(&high));
            }
        }
        for (text, other) in [
            ("0", "-0.0"),
            ("100", "1E2"),
            ("1.50", "15e-1"),
            ("007", "7"),
        ] {
            assert_eq!(decimal(text).compare(&decimal(other)), Ordering::Equal);
        }
        for text in ["", "-", ".", "1e", "x", "1e99999999999999999999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn integers_and_multiples_are_exact() {
        for (text, integer) in [
            ("1", true),
            ("1.0", true),
            ("1e2", true),
            ("12.5e1", true),
            ("0.5", false),
            ("123456789012345678.5", false),
            ("1e-1", false),
            ("10e-1", true),
        ] {
            assert_eq!(decimal(text).is_integer(), integer, "{text}");
        }
        for (text, divisor, multiple) in [
            ("10", "5", Some(true)),
            ("1", "0.5", Some(true)),
            ("0.3", "0.1", Some(true)),
            ("100", "100", Some(true)),
            ("10", "100", Some(false)),
            ("100000000000000000000000007", "7", Some(false)),
            ("700000000000000000000000007", "7", Some(true)),
            ("1.00000000000000000001", "0.5", Some(false)),
            ("1e400", "3", Some(false)),
            ("0", "3", Some(true)),
            ("1", "0", None),
        ] {
            assert_eq!(
                decimal(text).is_multiple_of(&decimal(divisor)),
                multiple,
                "{text} {divisor}"
            );
        }
    }

    proptest! {
        #[test]
        fn integers_compare_as_integers(left in any::<i64>(), right in any::<i64>()) {
            let compare = decimal(&left.to_string()).compare(&decimal(&right.to_string()));
            prop_assert_eq!(compare, left.cmp(&right));
            if right != 0 {
                let multiple = decimal(&left.to_string()).is_multiple_of(&decimal(&right.to_string()));
                prop_assert_eq!(multiple, Some(i128::from(left) % i128::from(right) == 0));
            }
        }
    }
}
