use crate::json::{Input, InputFault, Json, Object};
use crate::transcript::document_error::Complaint;
use crate::transcript::stream::Messages;
use crate::types::{Content, Recorded};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Whether a document was read, or why it is no form of its dialect.
pub(crate) type Read<'a> = Result<(), Complaint<'a>>;

/// Adds a piece, which stands in `around`, to the input of the call at a position.
pub(crate) fn piece<'a>(
    around: &Object<'a>,
    call: usize,
    piece: &str,
    messages: &mut Messages,
) -> Read<'a> {
    if messages.piece(call, piece) {
        return Ok(());
    }
    let what = "a piece of a call that was whole already";
    Err(Complaint::new(around.json(), what))
}

/// The content of a result: a text, a list of blocks or parts, or whatever else stands there, as its JSON.
fn content(value: Option<Json>) -> Content {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Content::Text(String::new());
    };
    if let Some(parts) = value.list() {
        let raw = |part: Json| RawValue::from_string(part.get().to_owned());
        let blocks: Result<Vec<_>, _> = parts.into_iter().map(raw).collect();
        return blocks.map_or(Content::Text(value.get().to_owned()), Content::Blocks);
    }
    let text = value.text().unwrap_or(Cow::Borrowed(value.get()));
    Content::Text(text.into_owned())
}

/// A result of a form that knows no errors.
pub(crate) fn plain(value: Option<Json>) -> Recorded {
    Recorded {
        content: content(value),
        is_error: None,
        skipped: false,
    }
}

/// An input that stands there as an object.
pub(crate) fn input(value: Option<Json>) -> Result<Input, InputFault> {
    value.map_or(Err(InputFault::Missing), Input::of)
}

/// An input that stands there as a string of JSON. `OpenAI` sends `""` for no arguments; some servers send an object.
pub(crate) fn arguments(value: Option<Json>) -> Result<Input, InputFault> {
    let Some(string) = value.filter(|value| value.get().starts_with('"')) else {
        return input(value);
    };
    match string.text() {
        None => Err(InputFault::NotJson("a lone surrogate".to_owned())),
        Some(json) if json.trim().is_empty() => Ok(Input::empty()),
        Some(json) => Input::parse(&json),
    }
}
