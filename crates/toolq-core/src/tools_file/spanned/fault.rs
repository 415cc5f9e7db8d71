//! Why a value is none, before it is known where it stands.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::text::nearest;
use crate::types::{Problem, Span};

/// Why a value is none.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is of another type.
    Type {
        /// What is wanted, as in "must be …".
        expected: String,
        /// What is there.
        found: String,
        /// What to do.
        hint: Option<String>,
    },
    /// It is a text that is none of the words.
    Word {
        found: String,
        words: &'static [&'static str],
    },
    /// Anything else; what stands behind `; ` is what to do.
    Other(String),
}

impl Fault {
    /// `found` is none of `words`.
    pub(crate) fn word(found: &str, words: &'static [&'static str]) -> Self {
        Self::Word {
            found: found.to_owned(),
            words,
        }
    }

    /// The problem at `span` of `subject`, a key or an element of a list.
    pub(crate) fn problem(self, subject: &str, span: Span) -> Problem {
        match self {
            Self::Type {
                expected,
                found,
                hint,
            } => Problem {
                hint,
                ..Problem::error(
                    span,
                    format!("{subject} must be {expected}"),
                    format!("this is {found}"),
                )
            },
            Self::Word { found, words } => {
                let message = format!("{subject} cannot be `{found}`");
                Problem::error(span, message, "unknown word").with_hint(advice(&found, words))
            }
            Self::Other(words) => match words.split_once("; ") {
                Some((message, hint)) => Problem::error(span, message, "").with_hint(hint),
                None => Problem::error(span, words, ""),
            },
        }
    }
}

/// "did you mean `timeout`?", or all that is known where nothing is near.
pub(crate) fn advice(found: &str, known: &[&str]) -> String {
    if let Some(near) = nearest(found, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    format!("known here: {}", known.join(", "))
}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let number = expected.strip_prefix(['u', 'i']);
        let is_whole = number.is_some_and(|bits| bits.parse::<u8>().is_ok());
        Self::Type {
            expected: if is_whole {
                "a whole number that is not negative".to_owned()
            } else if expected == "f64" {
                "a number".to_owned()
            } else {
                expected
            },
            found: match found {
                Unexpected::Str(_) => "text".to_owned(),
                Unexpected::Seq => "a list".to_owned(),
                Unexpected::Map => "a table".to_owned(),
                Unexpected::Unit => "nothing".to_owned(),
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Fault {}
