//! The keywords that look at numbers, judged by all of the numbers' digits.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::{Map, Value};

use crate::json::{Decimal, Input, JsonText, ParsedObject};
use crate::json_schema::problem_details::{
    MAX_DECLARED_CHARS, describe_found_type, format_options,
};
use crate::text::truncate;

/// Replaces the keywords that look at numbers with exact ones.
pub(crate) fn with_exact_keywords(
    mut options: ValidationOptions<'static>,
) -> ValidationOptions<'static> {
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        options = options.with_keyword(keyword, move |parent, value, _| {
            Ok(Box::new(ExactKeyword::Bound(Bound::new(
                keyword, parent, value,
            ))))
        });
    }
    options
        .with_keyword("multipleOf", |_, value, _| {
            Ok(Box::new(ExactKeyword::MultipleOf(value.clone())))
        })
        .with_keyword("type", |_, value, _| {
            Ok(Box::new(ExactKeyword::Type(value.clone())))
        })
        .with_keyword("enum", |_, value, _| {
            let options = value.as_array().cloned().unwrap_or_default();
            Ok(Box::new(ExactKeyword::OneOf(options)))
        })
        .with_keyword("const", |_, value, _| {
            Ok(Box::new(ExactKeyword::Const(value.clone())))
        })
}

/// A keyword that judges numbers by their text.
enum ExactKeyword {
    Bound(Option<Bound>),
    MultipleOf(Value),
    Type(Value),
    OneOf(Vec<Value>),
    Const(Value),
}

/// A limit for numbers.
struct Bound {
    limit: Value,
    /// How the number must compare with the limit.
    accepted: &'static [Ordering],
    /// What the number must be, before the limit.
    phrase: &'static str,
}

impl Bound {
    /// Returns `None` for draft 4's `exclusiveMinimum: true`, which only changes the meaning of `minimum`.
    fn new(keyword: &str, parent: &Map<String, Value>, limit: &Value) -> Option<Self> {
        let is_exclusive = |flag: &str| parent.get(flag) == Some(&Value::Bool(true));
        let (accepted, phrase): (&[Ordering], _) = match keyword {
            "minimum" if !is_exclusive("exclusiveMinimum") => {
                (&[Ordering::Greater, Ordering::Equal], "at least")
            }
            "maximum" if !is_exclusive("exclusiveMaximum") => {
                (&[Ordering::Less, Ordering::Equal], "at most")
            }
            "minimum" | "exclusiveMinimum" => (&[Ordering::Greater], "greater than"),
            _ => (&[Ordering::Less], "less than"),
        };
        limit.is_number().then(|| Self {
            limit: limit.clone(),
            accepted,
            phrase,
        })
    }
}

impl ExactKeyword {
    /// Returns what `value` must be, unless it is.
    fn violation(&self, value: &Value) -> Option<String> {
        match self {
            Self::Bound(bound) => {
                let bound = bound.as_ref()?;
                let ordering = decimal(value)?.compare(&decimal(&bound.limit)?);
                let is_accepted = bound.accepted.contains(&ordering);
                (!is_accepted).then(|| format!("must be {} {}", bound.phrase, bound.limit))
            }
            Self::MultipleOf(divisor) => {
                let is_multiple = decimal(value)?.is_multiple_of(&decimal(divisor)?);
                (is_multiple != Some(true)).then(|| format!("must be a multiple of {divisor}"))
            }
            Self::Type(names) => {
                let names: Vec<&str> = match names {
                    Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                    name => name.as_str().into_iter().collect(),
                };
                let has_type = names.iter().any(|name| has_type(value, name));
                (!has_type).then(|| {
                    let is_whole = decimal(value).is_none_or(|number| number.is_integer());
                    let actual = if is_whole {
                        describe_found_type(value)
                    } else {
                        "number"
                    };
                    format!("must be {}, not {actual}", names.join(" or "))
                })
            }
            Self::OneOf(options) => {
                let is_listed = options.iter().any(|option| is_equal(value, option));
                (!is_listed).then(|| format!("must be one of {}", format_options(options)))
            }
            Self::Const(expected) => (!is_equal(value, expected)).then(|| {
                let expected = truncate(&expected.to_string(), MAX_DECLARED_CHARS);
                format!("must be {expected}")
            }),
        }
    }
}

impl<'i> Keyword<'i> for ExactKeyword {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        match self.violation(value) {
            Some(message) => Err(ValidationError::custom(message)),
            None => Ok(()),
        }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.violation(value).is_none()
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match (name, value) {
        ("integer", Value::Number(_)) => decimal(value).is_some_and(|number| number.is_integer()),
        ("number", Value::Number(_))
        | ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    }
}

/// Whether two values are equal, with numbers by value: `1.0` is `1`.
fn is_equal(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Number(_), Value::Number(_)) => match (decimal(value), decimal(expected)) {
            (Some(value), Some(expected)) => value.compare(&expected).is_eq(),
            _ => false,
        },
        (Value::Array(items), Value::Array(expected)) => {
            items.len() == expected.len()
                && items
                    .iter()
                    .zip(expected)
                    .all(|(item, expected)| is_equal(item, expected))
        }
        (Value::Object(members), Value::Object(expected)) => {
            members.len() == expected.len()
                && members.iter().all(|(key, member)| {
                    expected
                        .get(key)
                        .is_some_and(|expected| is_equal(member, expected))
                })
        }
        _ => value == expected,
    }
}

// Judges numbers by their decimal text where a 64-bit float doesn't hold all of their digits. A program gets the
// digits, so the schema must not judge the rounded value.
//
// `jsonschema` would do this with the feature `arbitrary_precision` of `serde_json`, but that changes how every number
// in the whole program is represented, also in programs that embed toolq. Instead, the few inputs with such a number
// are validated with own versions of the keywords that look at numbers (`exact_keywords`).

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
        if has_floats(tree) {
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

/// Whether a number in `value` isn't an integer of at most 64 bits, which loses no digits.
fn has_floats(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_floats),
        Value::Object(members) => members.values().any(has_floats),
        _ => false,
    }
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
    fn numbers_that_lose_digits_are_found() {
        for (number, is_exact) in [
            ("18446744073709551615", true),
            ("18446744073709551617", false),
            ("-12345678901234567890", false),
            ("0.1", true),
            ("0.10000000000000000001", false),
            ("1e5", true),
            ("1.0E-5", true),
        ] {
            let input = Input::parse(&format!(r#"{{"a":["1.5e3",{{"b":{number}}}]}}"#)).unwrap();
            let found = InexactNumbers::find(&input, &input.to_value());
            assert_eq!(found.is_empty(), is_exact, "{number}");
        }
    }
}
