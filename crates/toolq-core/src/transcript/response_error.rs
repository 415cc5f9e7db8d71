//! Why a model API's response can't be used, and the errors that an API sends instead of one.

use std::borrow::Cow;

use crate::json::ParsedObject;

/// Why a response body isn't a usable response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseError {
    /// It's malformed, or something else: what is wrong with it, as a clause.
    Unreadable(String),
    /// The API returned an error instead.
    Api {
        /// The API's type or code of the error, such as `overloaded_error`; may be empty.
        kind: String,
        /// The API's message.
        message: String,
    },
}

impl ResponseError {
    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Self::Unreadable(why.into())
    }
}

/// Returns the error that an API sent instead of a response: `{"error": {"type", "message"}}`, a text under `error`, or
/// an object of type `error`.
pub(crate) fn find_error(object: &ParsedObject) -> Option<ResponseError> {
    let error = object.get("error").filter(|error| !error.is_null());
    let is_error = object.get_text("type").is_some_and(|kind| kind == "error");
    let error = error.or_else(|| is_error.then(|| object.json()))?;
    let inner = error.object();
    let field = |name| inner.as_ref().and_then(|inner| inner.get_text(name));
    let message = field("message").or_else(|| error.to_text());
    let kind = field("type").filter(|kind| kind != "error");
    Some(ResponseError::Api {
        kind: kind
            .or_else(|| field("code"))
            .unwrap_or_default()
            .into_owned(),
        message: message.unwrap_or(Cow::Borrowed(error.get())).into_owned(),
    })
}

/// Returns the error that ended a response of chat completions. There it's part of the choice: `finish_reason` is
/// `error`.
pub(crate) fn find_choice_error(choice: &ParsedObject) -> Option<ResponseError> {
    let is_error = choice.get_text("finish_reason")? == "error";
    is_error.then(|| {
        find_error(choice).unwrap_or_else(|| ResponseError::Api {
            kind: "api_error".to_owned(),
            message: "the server ended the response with an error".to_owned(),
        })
    })
}
