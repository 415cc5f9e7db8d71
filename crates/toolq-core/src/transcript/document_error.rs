//! An error about a value of a document that is still in memory.

use crate::json::{DuplicateKey, JsonText};

/// The result of reading a document or an event: an error if it doesn't have a form of its dialect.
pub(crate) type DocumentResult<'a> = Result<(), DocumentError<'a>>;

/// What is wrong with a value of a document.
#[derive(Debug)]
pub(crate) struct DocumentError<'a> {
    /// The value, borrowed from the document.
    pub value: JsonText<'a>,
    pub message: String,
    pub hint: Option<String>,
}

impl<'a> DocumentError<'a> {
    pub fn new(value: JsonText<'a>, message: impl Into<String>) -> Self {
        Self {
            value,
            message: message.into(),
            hint: None,
        }
    }

    /// Creates the error for a `value` that isn't an object; `what` says what was expected there.
    pub fn not_an_object(what: &str, value: JsonText<'a>) -> Self {
        Self::new(
            value,
            format!("{what} must be an object, not {}", value.kind()),
        )
    }

    /// Creates the error for the `value` of `key` that isn't an array.
    pub fn not_an_array(key: &str, value: JsonText<'a>) -> Self {
        Self::new(
            value,
            format!("`{key}` must be an array, not {}", value.kind()),
        )
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl<'a> From<DuplicateKey<'a>> for DocumentError<'a> {
    fn from(
        DuplicateKey {
            key,
            second_value: second,
        }: DuplicateKey<'a>,
    ) -> Self {
        Self::new(
            second,
            format!(
                "the key `{}` appears twice in one object",
                key.escape_debug()
            ),
        )
    }
}
