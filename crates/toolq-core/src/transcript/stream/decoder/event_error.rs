//! Why an event of a stream can't be used.

use crate::json::describe_parse_error;
use crate::transcript::document_error::DocumentError;
use crate::transcript::response_error::ResponseError;

#[derive(Debug)]
pub(crate) enum FailureKind {
    /// It ends too early.
    CutOff,
    /// Its bytes or an event can't be read.
    Malformed,
    /// The API sent this error.
    Api(ResponseError),
    /// An event can't follow those before it, or isn't one of its dialect. Continuing could lose a call.
    Unexpected,
}

/// What is wrong with an event, and the column of that in the first line of its data.
pub(crate) struct EventError {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) column: usize,
}

impl EventError {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
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
            ..Self::new(FailureKind::Malformed, message)
        }
    }

    /// Creates the error of an event that its dialect doesn't accept; `api_error` is the error that it reports, if any.
    pub(crate) fn unexpected(error: DocumentError<'_>, api_error: Option<ResponseError>) -> Self {
        Self {
            kind: api_error.map_or(FailureKind::Unexpected, FailureKind::Api),
            message: error.message,
            hint: error.hint,
            column: 0,
        }
    }
}
