//! A call as its dialect's reader finds it, before it has a place in a turn; and the readers of what dialects share.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::json::{Input, InvalidInput, JsonKind, JsonText, ParsedObject, to_json_line};
use crate::transcript::document_frames::{DocumentError, InputDocument};
use crate::transcript::index::{CallId, CallIndexEntry};
use crate::types::{
    Call, CallKind, GENERATED_ID_PREFIX, RecordedResult, ResultContent, StreamVendor,
};

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
        Some(other) => Input::parse(other.get()),
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

// Says what is wrong with an input that isn't what was expected, and what was.

/// Maximum number of keys of an unrecognized object that an error names.
const MAX_SHOWN_KEYS: usize = 6;
/// Maximum number of characters of an input's text that an error shows.
const MAX_SHOWN_CHARS: usize = 100;

/// What an unrecognized document could be.
const EXPECTED: &str = "expected a response, an assistant message, an array of content blocks, a request with its \
                        `messages`, or a session log";

/// Returns the error for an unrecognized document: what it is, and what was expected.
pub(crate) fn unrecognized_document<'a>(document: &InputDocument<'a>) -> DocumentError<'a> {
    if let Some(object) = &document.object {
        return unrecognized_object(object);
    }
    let message = format!("{} isn't a model response", document.json.kind());
    DocumentError::new(document.json, message).with_hint(EXPECTED)
}

/// Like [`unrecognized_document`], for an object.
pub(crate) fn unrecognized_object<'a>(object: &ParsedObject<'a>) -> DocumentError<'a> {
    if object.has_value("error") {
        return api_error(object);
    }
    let message = format!("{} isn't a model response", describe_object(object));
    let hint = if is_stream_event(object) {
        "this is an event of a stream, without its `data: `. To plan or run such lines: \
         `awk 'NF {print \"data: \" $0 \"\\n\"}' FILE | toolq plan`"
    } else if is_untyped_call(object) {
        "the block of a call says so: add `\"type\": \"tool_use\"`"
    } else {
        EXPECTED
    };
    DocumentError::new(object.json(), message).with_hint(hint)
}

/// Returns whether an object is a call, except that it doesn't say so.
fn is_untyped_call(object: &ParsedObject<'_>) -> bool {
    !object.has_value("type") && object.has_value("name") && object.has_value("input")
}

/// Returns whether an object is what an API sends in one event of a stream.
fn is_stream_event(object: &ParsedObject<'_>) -> bool {
    let kind = object.get_text("type");
    kind.is_some_and(|kind| kind == "message_start" || kind.starts_with("response."))
        || object.get_text("object").as_deref() == Some("chat.completion.chunk")
}

/// Returns the error for an event of another vendor's stream than the user named.
pub(crate) fn vendor_mismatch_error<'a>(
    event: &ParsedObject<'a>,
    found: StreamVendor,
    given: StreamVendor,
) -> DocumentError<'a> {
    let (found, given) = (found.name(), given.name());
    let message = format!("this has the form of `{found}`, but `--from` says `{given}`");
    let hint = format!("write `--from {found}`, or leave it out: toolq detects the format");
    DocumentError::new(event.json(), message).with_hint(hint)
}

/// Returns the error for an object with which an API says that it failed.
pub(crate) fn api_error<'a>(object: &ParsedObject<'a>) -> DocumentError<'a> {
    let api_text = describe_api_error(object);
    let message = format!("this is an API error{api_text}, not a model response");
    DocumentError::new(object.json(), message).with_hint("the request failed: check what it sent")
}

/// Returns the error for an event with which the API aborts a stream.
pub(crate) fn stream_error<'a>(event: &ParsedObject<'a>) -> DocumentError<'a> {
    let api_text = describe_api_error(event);
    let message = format!("the API ended the stream with an error{api_text}");
    DocumentError::new(event.json(), message)
}

/// Returns the error for an event of no known dialect.
pub(crate) fn unrecognized_event<'a>(event: &ParsedObject<'a>) -> DocumentError<'a> {
    let message = format!(
        "{} isn't an event of a model's stream",
        describe_object(event)
    );
    DocumentError::new(event.json(), message).with_hint(
        "expected events of Anthropic's Messages API, of OpenAI's chat completions or responses, or of Gemini",
    )
}

/// Returns the kind and message of an API error in parentheses, or an empty string if it has neither.
fn describe_api_error(object: &ParsedObject) -> String {
    let error = object.get_object("error");
    let error = error.as_ref().unwrap_or(object);
    let part = |key| error.get_text(key).filter(|text| text != "error");
    let fields = [
        part("type").or(part("code")),
        part("message"),
        object.get_text("error"),
    ];
    let texts: Vec<String> = fields
        .iter()
        .flatten()
        .map(|text| escape_and_truncate(text))
        .collect();
    match texts.as_slice() {
        [] => String::new(),
        texts => format!(" ({})", texts.join(": ")),
    }
}

/// Describes an object by its keys.
fn describe_object(object: &ParsedObject) -> String {
    let keys = object
        .members()
        .iter()
        .map(|(key, _)| format!("`{}`", escape_and_truncate(key)));
    let keys: Vec<String> = keys.take(MAX_SHOWN_KEYS).collect();
    if keys.is_empty() {
        return "an empty object".to_owned();
    }
    let more = if object.members().len() > MAX_SHOWN_KEYS {
        ", …"
    } else {
        ""
    };
    format!("an object with the keys {}{more}", keys.join(", "))
}

/// Escapes control characters in a text of the input and truncates it.
fn escape_and_truncate(text: &str) -> String {
    text.chars()
        .take(MAX_SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect()
}

/// Keys that inputs have in some dialect or template.
pub(crate) const INPUT_KEYS: [&str; 6] = [
    "arguments",
    "args",
    "input",
    "kwargs",
    "parameters",
    "params",
];

/// What keys of inputs have in them. What stands under any other such key may be an input, but nothing says that it is.
pub(crate) const INPUT_WORDS: [&str; 3] = ["arg", "input", "param"];

/// Returns what is at `key` of a call, the first of `places`. If that is missing or empty, the input is what stands under the only
/// other key of an input, there or in the objects around it.
///
/// # Errors
/// It isn't certain what the input is.
pub(crate) fn find_input<'a>(
    places: &[&ParsedObject<'a>],
    key: &str,
) -> Result<Option<JsonText<'a>>, InvalidInput> {
    let own = places.first().and_then(|call| call.get(key));
    if own.is_some_and(|own| !says_nothing(own)) {
        return Ok(own);
    }
    let members = places.iter().flat_map(|place| place.members());
    let others: Vec<_> = members
        .filter(|(name, value)| is_like_input(name) && !says_nothing(*value))
        .collect();
    match others[..] {
        [] => Ok(own),
        [(name, value)] if own.is_none_or(is_blank) && is_input(name, *value) => Ok(Some(*value)),
        [(name, _), ..] => Err(InvalidInput::OtherKey(name.to_string())),
    }
}

/// Parses what [`find_input`] finds.
///
/// # Errors
/// It isn't certain what the input is, or it isn't an object.
pub(crate) fn read_input(places: &[&ParsedObject], key: &str) -> Result<Input, InvalidInput> {
    find_input(places, key).and_then(parse_input)
}

pub(crate) fn is_like_input(name: &str) -> bool {
    let name = name.to_lowercase();
    INPUT_WORDS.iter().any(|word| name.contains(word))
}

pub(crate) fn is_input(name: &str, value: JsonText) -> bool {
    INPUT_KEYS.contains(&name) && matches!(value.kind(), JsonKind::Object | JsonKind::String)
}

pub(crate) fn is_blank(value: JsonText) -> bool {
    value.is_null() || value.get() == "\"\""
}

/// Returns whether a value has no arguments, even if it says so.
pub(crate) fn says_nothing(value: JsonText) -> bool {
    let letters = || {
        value
            .get()
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
    };
    is_blank(value) || letters().eq(*b"{}") || letters().eq(*b"\"{}\"")
}

/// The key under which the API's documentation suggests to send back an input that isn't valid JSON.
const INVALID_JSON_KEY: &str = "INVALID_JSON";

/// Returns the input of a call whose own input, or the reason that it isn't valid, is `text`. The API accepts only
/// objects as inputs.
pub fn invalid_input_object(text: &str) -> Value {
    json!({ INVALID_JSON_KEY: text })
}

/// The type of the call of a custom tool.
pub(crate) const CUSTOM_CALL: &str = "custom_tool_call";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_text_or_a_number_that_says_something() {
        let read = |json: &'static str| CallId::from_json(JsonText::new(json));
        for blank in ["null", "\"\"", "\" \\n\"", "\"null\""] {
            assert!(read(blank).is_missing(), "{blank}");
        }
        assert_eq!(read("\"a\""), CallId::Text("a".into()));
        assert_eq!(
            read("12345678901234567890").text(),
            Some("12345678901234567890")
        );
        for (other, kind) in [
            ("{}", JsonKind::Object),
            ("[1]", JsonKind::Array),
            ("true", JsonKind::Boolean),
            ("\"\\ud800\"", JsonKind::String),
        ] {
            assert_eq!(read(other), CallId::Unreadable(kind), "{other}");
        }
    }
}
