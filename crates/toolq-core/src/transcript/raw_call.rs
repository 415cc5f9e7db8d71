//! A call as its dialect's reader finds it, before it has a place in a turn; and the readers of what dialects share.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::json::{Input, InvalidInput, JsonText, ParsedObject, to_json_line};
use crate::transcript::index::CallIndexEntry;
use crate::types::{Call, CallKind, GENERATED_ID_PREFIX, RecordedResult, ResultContent};

/// The id, name, and input of one call.
#[derive(Debug)]
pub(crate) struct RawCall {
    /// `None` if it's missing or not a string.
    id: Option<String>,
    /// `None` if it's missing or not a string.
    name: Option<String>,
    kind: CallKind,
    input: Result<Input, InvalidInput>,
}

impl RawCall {
    /// Creates a call. Its input is an error if it has no name.
    pub fn new(
        id: Option<Cow<str>>,
        name: Option<Cow<str>>,
        input: Result<Input, InvalidInput>,
    ) -> Self {
        let input = match name {
            Some(_) => input,
            None => Err(InvalidInput::MissingName),
        };
        Self {
            id: id.map(Cow::into_owned),
            name: name.map(Cow::into_owned),
            kind: CallKind::Function,
            input,
        }
    }

    /// Creates a call of a custom tool, whose input is `text`.
    pub fn custom(
        id: Option<Cow<str>>,
        name: Option<Cow<str>>,
        text: Result<&str, InvalidInput>,
    ) -> Self {
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
        let id = self.id.unwrap_or_else(|| {
            let input = self.input.as_ref().map_or("", Input::text);
            generate_call_id(turn, position, &name, &to_json_line(input))
        });
        Call {
            turn,
            position,
            id,
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

/// Parses an input that is given as an object.
pub(crate) fn parse_input(value: Option<JsonText>) -> Result<Input, InvalidInput> {
    value.map_or(Err(InvalidInput::Missing), Input::from_json)
}

/// Parses an input that some APIs leave out if there are no arguments.
pub(crate) fn parse_optional_input(value: Option<JsonText>) -> Result<Input, InvalidInput> {
    let value = value.filter(|value| !value.is_null());
    value.map_or_else(|| Ok(Input::empty()), Input::from_json)
}

/// Parses an input that is given as a string of JSON. Some servers send an object instead of a string.
pub(crate) fn parse_arguments(value: Option<JsonText>) -> Result<Input, InvalidInput> {
    let Some(string) = value.filter(|value| value.get().starts_with('"')) else {
        return parse_optional_input(value);
    };
    parse_arguments_text(&expect_text(string)?)
}

/// Parses the text of an input. `OpenAI` sends an empty one for no arguments, and some servers `null`.
pub(crate) fn parse_arguments_text(text: &str) -> Result<Input, InvalidInput> {
    match text.trim() {
        "" | "null" => Ok(Input::empty()),
        text => Input::parse(text),
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
