//! Judges numbers by their decimal text where a 64-bit float doesn't hold all of their digits. A program gets the
//! digits, so the schema must not judge the rounded value.
//!
//! `jsonschema` would do this with the feature `arbitrary_precision` of `serde_json`, but that changes how every number
//! in the whole program is represented, also in programs that embed toolq. Instead, the few inputs with such a number
//! are validated with own versions of the keywords that look at numbers (`exact_keywords`).

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

use crate::json::{Decimal, Input, JsonText, ParsedObject};

/// Decimal digits that a 64-bit float always holds.
const MAX_EXACT_DIGITS: usize = 15;

thread_local! {
    /// The numbers of the input that is being validated on this thread. A keyword gets nothing but the value.
    static INEXACT_NUMBERS: RefCell<InexactNumbers> = RefCell::default();
}

/// The numbers of an input that lose digits in its tree, by their address in it.
#[derive(Debug, Default)]
pub(crate) struct InexactNumbers(HashMap<usize, Decimal>);

impl InexactNumbers {
    /// Finds the numbers of `input` that lose digits in `tree`, the input's own tree.
    pub(crate) fn find(input: &Input, tree: &Value) -> Self {
        let mut found = Self::default();
        if may_lose_digits(input.text()) {
            found.visit(JsonText::new(input.text()), tree);
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs `validate`, during which exact keywords see these numbers.
    pub(crate) fn scope<T>(self, validate: impl FnOnce() -> T) -> T {
        let outer = INEXACT_NUMBERS.replace(self);
        let result = validate();
        INEXACT_NUMBERS.set(outer);
        result
    }

    fn visit(&mut self, text: JsonText<'_>, value: &Value) {
        match value {
            Value::Number(number) => {
                let rounded = Decimal::parse(&number.to_string());
                if let Some(exact) = Decimal::parse(text.get())
                    && !rounded.is_some_and(|rounded| rounded.compare(&exact).is_eq())
                {
                    self.0.insert(std::ptr::from_ref(value) as usize, exact);
                }
            }
            Value::Array(items) => {
                for (text, item) in text.elements().into_iter().flatten().zip(items) {
                    self.visit(text, item);
                }
            }
            Value::Object(members) => {
                let object = text.object();
                for (key, text) in object.iter().flat_map(ParsedObject::members) {
                    if let Some(member) = members.get(&**key) {
                        self.visit(*text, member);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether a text may contain a number that a 64-bit float doesn't hold. Also looks into strings.
fn may_lose_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut run = 0;
    let mut at = 0;
    loop {
        if run == 0 && !bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += count_without_digit(&bytes[at..]);
        }
        let Some(byte) = bytes.get(at) else {
            return false;
        };
        match byte {
            b'0'..=b'9' => run += 1,
            b'.' => {}
            b'e' | b'E' => {
                let after = bytes.get(at + 1);
                if after.is_some_and(|after| matches!(after, b'+' | b'-' | b'0'..=b'9')) {
                    return true;
                }
                run = 0;
            }
            _ => run = 0,
        }
        if run > MAX_EXACT_DIGITS {
            return true;
        }
        at += 1;
    }
}

/// Returns how many bytes come before the first digit.
fn count_without_digit(bytes: &[u8]) -> usize {
    // Without returning early, so that the compiler compares the bytes of a chunk at once.
    let has_digit = |chunk: &[u8; 32]| {
        chunk
            .iter()
            .fold(false, |found, byte| found | byte.is_ascii_digit())
    };
    let (chunks, _) = bytes.as_chunks();
    let skipped = 32 * chunks.iter().take_while(|chunk| !has_digit(chunk)).count();
    let rest = &bytes[skipped..];
    skipped
        + rest
            .iter()
            .position(u8::is_ascii_digit)
            .unwrap_or(rest.len())
}

/// Returns a number with all of its digits; `None` for any other value.
pub(crate) fn decimal(value: &Value) -> Option<Decimal> {
    let Value::Number(number) = value else {
        return None;
    };
    let address = std::ptr::from_ref(value) as usize;
    let exact = INEXACT_NUMBERS.with_borrow(|numbers| numbers.0.get(&address).cloned());
    exact.or_else(|| Decimal::parse(&number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_found_wherever_they_are() {
        for before in 0..70 {
            let prose = "x.".repeat(before);
            for (number, may_lose) in [
                ("123456789012345", false),
                ("1234567890123456", true),
                ("1.23456789012345", false),
                ("1.234567890123456", true),
                ("1e5", true),
                ("1.0E-5", true),
                ("12ef", false),
                ("e5", false),
                (".", false),
            ] {
                for after in ["", ",", "n 1 e", "e n", &prose] {
                    let text = format!("{prose}{number}{after}");
                    assert_eq!(may_lose_digits(&text), may_lose, "{text}");
                }
            }
        }
    }
}
