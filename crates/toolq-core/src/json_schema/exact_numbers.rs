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
    let mut run = 0;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => run += 1,
            b'.' => {}
            b'e' | b'E' if run > 0 => {
                let after = text.as_bytes().get(index + 1);
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
    }
    false
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
