//! Why a value is invalid, before its position is known.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::text::suggest_name;
use crate::types::{FileProblem, Span};

/// Why a value is invalid.
#[derive(Debug)]
pub(crate) enum FieldError {
    /// The value has the wrong type.
    WrongType {
        /// What is expected, as in "must be …".
        expected: String,
        /// What was found, as in "this is …".
        found: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The text isn't one of the known words.
    UnknownWord {
        found: String,
        known: &'static [&'static str],
    },
    /// Anything else. The part after `; ` becomes the hint.
    Other(String),
}

impl FieldError {
    /// Returns the error for a text that isn't one of the `known` words.
    pub(crate) fn unknown_word(found: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownWord {
            found: found.to_owned(),
            known,
        }
    }

    /// Converts the error into a problem at `span`. `subject` names the key or the list element.
    pub(crate) fn into_problem(self, subject: &str, span: Span) -> FileProblem {
        match self {
            Self::WrongType {
                expected,
                found,
                hint,
            } => FileProblem {
                hint,
                ..FileProblem::error(
                    span,
                    format!("{subject} must be {expected}"),
                    format!("this is {found}"),
                )
            },
            Self::UnknownWord { found, known } => {
                let message = format!("{subject} cannot be `{found}`");
                FileProblem::error(span, message, "unknown value")
                    .with_hint(suggest_known(&found, known))
            }
            Self::Other(message) => match message.split_once("; ") {
                Some((message, hint)) => FileProblem::error(span, message, "").with_hint(hint),
                None => FileProblem::error(span, message, ""),
            },
        }
    }
}

/// Returns "did you mean `timeout`?", or lists all known words if no word is similar.
pub(crate) fn suggest_known(found: &str, known: &[&str]) -> String {
    if let Some(near) = suggest_name(found, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    format!("known here: {}", known.join(", "))
}

impl Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let number = expected.strip_prefix(['u', 'i']);
        let is_whole = number.is_some_and(|bits| bits.parse::<u8>().is_ok());
        Self::WrongType {
            expected: if expected == "u16" {
                "a whole number from 0 to 65535".to_owned()
            } else if is_whole {
                "a whole number, 0 or more".to_owned()
            } else if expected == "f64" {
                "a number".to_owned()
            } else {
                expected
            },
            found: match found {
                Unexpected::Str(_) => "text".to_owned(),
                Unexpected::Seq => "a list".to_owned(),
                Unexpected::Map => "a table".to_owned(),
                Unexpected::Unit => "null".to_owned(),
                Unexpected::Unsigned(number) => number.to_string(),
                Unexpected::Signed(number) => number.to_string(),
                Unexpected::Float(number) => number.to_string(),
                other => other.to_string(),
            },
            hint: None,
        }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for FieldError {}
