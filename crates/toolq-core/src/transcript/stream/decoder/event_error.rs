//! Why an event of a stream can't be used.

use crate::json::describe_parse_error;
use crate::transcript::document_error::DocumentError;

/// What is wrong with an event, and the column of that in the first line of its data.
pub(crate) struct EventError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) column: usize,
}

impl EventError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            column: 0,
        }
    }

    /// Creates the error of an event that isn't JSON.
    pub(crate) fn invalid_json(error: &serde_json::Error) -> Self {
        let message = describe_parse_error("the event", error);
        let is_first_line = error.line() == 1;
        let column = if is_first_line {
            error.column().saturating_sub(1)
        } else {
            0
        };
        Self {
            column,
            ..Self::new(message)
        }
    }

    /// Creates the error of an event that its dialect doesn't accept.
    pub(crate) fn unexpected(error: DocumentError<'_>) -> Self {
        Self {
            message: error.message,
            hint: error.hint,
            column: 0,
        }
    }
}
