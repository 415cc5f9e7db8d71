//! Says what is wrong with an input that isn't what was expected, and what was.

use crate::json::ParsedObject;
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentError;
use crate::types::StreamVendor;

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
