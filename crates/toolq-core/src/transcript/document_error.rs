//! A value of a document that is not what it should be, while the document is at hand.

use crate::json::{Json, Twice};

/// What is wrong with a value.
#[derive(Debug)]
pub(crate) struct Complaint<'a> {
    /// The value, a part of the document that is being read.
    pub at: Json<'a>,
    pub message: String,
    pub hint: Option<String>,
}

impl<'a> Complaint<'a> {
    pub fn new(at: Json<'a>, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            hint: None,
        }
    }

    /// `value` is no object.
    pub fn no_object(what: &str, value: Json<'a>) -> Self {
        Self::new(
            value,
            format!("{what} must be an object, not {}", value.kind()),
        )
    }

    /// `value` is no array.
    pub fn no_list(key: &str, value: Json<'a>) -> Self {
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

impl<'a> From<Twice<'a>> for Complaint<'a> {
    fn from(Twice { key, second }: Twice<'a>) -> Self {
        Self::new(
            second,
            format!(
                "the key `{}` stands twice in one object",
                key.escape_debug()
            ),
        )
    }
}
