//! Reads the inputs of calls: an object, a string of JSON, or the pieces of a stream.

use crate::json::{Input, InvalidInput, JsonText, ParsedObject};
use crate::transcript::document_error::{DocumentError, DocumentResult};
use crate::transcript::stream::MessageTracker;

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

/// Adds a piece to the input of the call in block number `call`. `enclosing` is the object with the piece, for the error.
pub(crate) fn add_input_piece<'a>(
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
