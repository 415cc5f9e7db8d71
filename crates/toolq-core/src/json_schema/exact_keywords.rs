//! The keywords that look at numbers, judged by all of the numbers' digits.

use std::cmp::Ordering;

use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::{Map, Value};

use crate::json_schema::error_messages::{MAX_DECLARED_CHARS, describe_found_type, format_options};
use crate::json_schema::exact_numbers::decimal;
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
