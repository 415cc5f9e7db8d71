//! A call as its dialect's reader finds it, before it has a place in a turn; and the readers of what dialects share.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::json::{Input, InvalidInput, JsonKind, JsonText, ParsedObject, to_json_line};
use crate::transcript::call_id::CallId;
use crate::transcript::index::CallIndexEntry;
use crate::types::{Call, CallKind, GENERATED_ID_PREFIX, RecordedResult, ResultContent};

/// The id, name, and input of one call.
#[derive(Debug)]
pub(crate) struct RawCall {
    id: CallId<'static>,
    /// `None` if it's missing or not a string.
    name: Option<String>,
    kind: CallKind,
    input: Result<Input, InvalidInput>,
}

impl RawCall {
    /// Creates a call. Its input is an error if it has no name, or an id that no result can have.
    pub fn new(id: CallId, name: Option<Cow<str>>, input: Result<Input, InvalidInput>) -> Self {
        let input = match (&name, &id) {
            (None, _) => Err(InvalidInput::MissingName),
            (_, CallId::Unreadable(kind)) => Err(InvalidInput::UnreadableId(*kind)),
            _ => input,
        };
        Self {
            id: id.into_owned(),
            name: name.map(Cow::into_owned),
            kind: CallKind::Function,
            input,
        }
    }

    /// Creates a call of a custom tool, whose input is `text`.
    pub fn custom(id: CallId, name: Option<Cow<str>>, text: Result<&str, InvalidInput>) -> Self {
        let input = text.and_then(|text| Input::of_text("input", text));
        Self {
            kind: CallKind::Custom,
            ..Self::new(id, name, input)
        }
    }

    /// Rejects the call if `object` has a duplicate key. Readers disagree on which of the two counts, so another
    /// program would see a different call.
    pub fn reject_duplicate_keys(mut self, object: &ParsedObject) -> Self {
        if let Some(key) = object.duplicate_key() {
            self.input = Err(InvalidInput::duplicate_key(key));
        }
        self
    }

    /// Creates the call at a position of a turn. If it has no id, it gets one that is the same on every run, and whether or
    /// not the call was streamed.
    pub fn into_call(self, turn: usize, position: usize) -> Call {
        let name = self.name.unwrap_or_default();
        let id = self.id.text().map_or_else(
            || {
                let input = self.input.as_ref().map_or("", Input::text);
                generate_call_id(turn, position, &name, &to_json_line(input))
            },
            str::to_owned,
        );
        Call {
            turn,
            position,
            id,
            has_number_id: self.id.is_number(),
            kind: self.kind,
            name: name.into(),
            input: self.input.map_err(Box::new),
            parent: None,
        }
    }
}

/// Generates the id of a call without one, from its position, its name, and its input on one line.
fn generate_call_id(turn: usize, position: usize, name: &str, input: &str) -> String {
    let text = format!("{turn}\0{position}\0{name}\0{input}");
    let digest = Sha256::digest(text);
    format!("{GENERATED_ID_PREFIX}{}", HEXLOWER.encode(&digest[..8]))
}

/// Parses `call` from `text`, which starts at byte `text_offset` of the input.
pub(crate) fn extract_call(
    text: &str,
    call: CallIndexEntry,
    text_offset: u64,
) -> Option<ParsedObject<'_>> {
    let at = usize::try_from(call.offset - text_offset).ok()?;
    let text = text.get(at..at + call.len as usize)?;
    ParsedObject::parse(text).ok().flatten()
}

/// Parses the input of a call: an object, or a text that is the JSON of one, even if it was made a text twice. `null`, an empty
/// text, and nothing at all are no arguments.
pub(crate) fn parse_input(value: Option<JsonText>) -> Result<Input, InvalidInput> {
    match value.filter(|value| !value.is_null()) {
        None => Ok(Input::empty()),
        Some(text) if text.kind() == JsonKind::String => parse_input_text(&expect_text(text)?),
        Some(other) => Input::from_json(other),
    }
}

/// Like [`parse_input`], for the text of an input.
pub(crate) fn parse_input_text(text: &str) -> Result<Input, InvalidInput> {
    let quoted = Some(text.trim()).filter(|text| text.starts_with('"'));
    let inner = quoted.and_then(|text| serde_json::from_str::<String>(text).ok());
    match (text.trim(), inner) {
        ("" | "null", _) => Ok(Input::empty()),
        (_, Some(object)) if object.trim_start().starts_with('{') => Input::parse(&object),
        (text, _) => Input::parse(text),
    }
}

/// Returns the text of a string in an input.
pub(crate) fn expect_text(value: JsonText) -> Result<Cow<str>, InvalidInput> {
    let lone_surrogate = || InvalidInput::NotJson("a lone surrogate".to_owned());
    value.to_text().ok_or_else(lone_surrogate)
}

/// Returns a text. An empty text counts as missing, because some servers send one instead of leaving it out.
pub(crate) fn non_empty_text<'a>(object: &ParsedObject<'a>, key: &str) -> Option<Cow<'a, str>> {
    object.get_text(key).filter(|text| !text.is_empty())
}

/// Creates a result in a form that doesn't say whether the call failed.
pub(crate) fn plain_result(content: Option<JsonText>) -> RecordedResult {
    RecordedResult {
        content: parse_content(content),
        is_error: None,
        skipped: false,
        rejected: None,
    }
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

/// Returns a text as JSON.
pub(crate) fn quote_json(text: &str) -> String {
    Value::from(text).to_string()
}
