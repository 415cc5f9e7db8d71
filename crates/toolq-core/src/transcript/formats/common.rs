//! What the readers of several dialects have in common.

use crate::json::{Input, InvalidInput, JsonText, ParsedObject};
use crate::transcript::document_error::DocumentError;
use crate::transcript::stream::MessageTracker;
use crate::types::{Api, Dialect, RecordedResult, ResultContent};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The result of reading a document or an event: an error if it doesn't have a form of its dialect.
pub(crate) type DocumentResult<'a> = Result<(), DocumentError<'a>>;

/// Returns the dialect of an API's responses.
pub(crate) fn api_dialect(api: Api) -> Dialect {
    match api {
        Api::Anthropic => Dialect::Anthropic,
        Api::OpenAiChat => Dialect::OpenAiChat,
    }
}

/// Adds a piece to the input of the call in block number `call`. `enclosing` is the object with the piece, for the error.
pub(crate) fn add_piece<'a>(
    enclosing: &ParsedObject<'a>,
    call: usize,
    piece: &str,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    if messages.add_piece(call, piece) {
        return Ok(());
    }
    let message = "a piece of a call that was already complete";
    Err(DocumentError::new(enclosing.json(), message))
}

/// Parses the content of a result: a text, a list of blocks or parts, or the JSON of anything else as text.
fn parse_content(value: Option<JsonText>) -> ResultContent {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return ResultContent::Text(String::new());
    };
    if let Some(parts) = value.elements() {
        let raw = |part: JsonText| RawValue::from_string(part.get().to_owned());
        let blocks: Result<Vec<_>, _> = parts.into_iter().map(raw).collect();
        return blocks.map_or(
            ResultContent::Text(value.get().to_owned()),
            ResultContent::Blocks,
        );
    }
    let text = value.to_text().unwrap_or(Cow::Borrowed(value.get()));
    ResultContent::Text(text.into_owned())
}

/// Creates a result in a form that doesn't say whether the call failed.
pub(crate) fn plain_result(value: Option<JsonText>) -> RecordedResult {
    RecordedResult {
        content: parse_content(value),
        is_error: None,
        skipped: false,
        rejected: None,
    }
}

/// Parses an input that is given as an object.
pub(crate) fn parse_input(value: Option<JsonText>) -> Result<Input, InvalidInput> {
    value.map_or(Err(InvalidInput::Missing), Input::from_json)
}

/// Parses an input that is given as a string of JSON. `OpenAI` sends `""` for no arguments, and some servers send an
/// object instead of a string.
pub(crate) fn parse_arguments(value: Option<JsonText>) -> Result<Input, InvalidInput> {
    let Some(string) = value.filter(|value| value.get().starts_with('"')) else {
        return parse_input(value);
    };
    match string.to_text() {
        None => Err(InvalidInput::NotJson("a lone surrogate".to_owned())),
        Some(json) if json.trim().is_empty() => Ok(Input::empty()),
        Some(json) => Input::parse(&json),
    }
}
