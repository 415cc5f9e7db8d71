//! Detects the dialect of a document by its form alone.

use crate::json::{JsonText, ObjectIter, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentError;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::claude_code;
use crate::transcript::formats::codex;
use crate::transcript::formats::openai_chat;
use crate::transcript::formats::openai_responses;
use crate::transcript::stream::StreamVendor;
use crate::types::Dialect;

/// Maximum number of keys of an unrecognized object that an error names.
const MAX_SHOWN_KEYS: usize = 6;
/// Maximum number of characters of an input's text that an error shows.
const MAX_SHOWN_CHARS: usize = 100;

/// What the form of a document says about its dialect.
enum Form {
    /// Only this dialect has it.
    Of(Dialect),
    /// A conversation that has only text so far, which looks the same in several dialects.
    OnlyText,
    Unknown,
}

impl Form {
    fn of_message(dialect: Option<Dialect>) -> Self {
        dialect.map_or(Self::OnlyText, Self::Of)
    }

    fn of_part(dialect: Option<Dialect>) -> Self {
        dialect.map_or(Self::Unknown, Self::Of)
    }
}

/// Returns the dialect of a document, or `None` if it has no known form. A conversation that has only text so far
/// counts as Anthropic's; it has no calls, so the choice doesn't matter.
pub(crate) fn detect_dialect(document: &InputDocument) -> Option<Dialect> {
    match detect_form(document) {
        Form::Of(dialect) => Some(dialect),
        Form::OnlyText => Some(Dialect::Anthropic),
        Form::Unknown => None,
    }
}

fn detect_form(document: &InputDocument) -> Form {
    match (&document.object, document.json.objects()) {
        (Some(whole), _) => detect_object(whole),
        (None, Some(items)) => detect_list(items),
        (None, None) => Form::Unknown,
    }
}

fn detect_object(object: &ParsedObject) -> Form {
    if crate::transcript::formats::is_record(object) {
        Form::Of(Dialect::Toolq)
    } else if codex::is_log_line(object) {
        Form::Of(Dialect::Codex)
    } else if claude_code::is_log_line(object) {
        Form::Of(Dialect::ClaudeCode)
    } else if object.has_value("role") {
        Form::of_message(detect_message(object))
    } else if anthropic::is_message_without_role(object) {
        Form::Of(Dialect::Anthropic)
    } else if let Some(messages) = object.get("messages").and_then(JsonText::objects) {
        detect_conversation(messages)
    } else {
        Form::of_part(detect_part(object))
    }
}

fn detect_list(mut items: ObjectIter) -> Form {
    let Some(first) = items.next() else {
        return Form::OnlyText;
    };
    let Ok(first) = first else {
        return Form::Unknown;
    };
    if !first.has_value("role") {
        return Form::of_part(detect_part(&first));
    }
    match detect_message(&first) {
        Some(dialect) => Form::Of(dialect),
        None => detect_conversation(items),
    }
}

/// Returns the dialect of the first message that identifies one.
fn detect_conversation(messages: ObjectIter) -> Form {
    let mut dialects = messages
        .flatten()
        .filter_map(|entry| detect_message(&entry));
    Form::of_message(dialects.next())
}

/// Detects the dialect of a content block, an item, or an object with choices or items.
fn detect_part(object: &ParsedObject) -> Option<Dialect> {
    let kind = object.get_text("type");
    if kind.is_some_and(|kind| anthropic::is_block(&kind)) {
        Some(Dialect::Anthropic)
    } else if openai_chat::is_document(object) {
        Some(Dialect::OpenAiChat)
    } else {
        openai_responses::is_document(object).then_some(Dialect::OpenAiResponses)
    }
}

/// Returns the dialect of a message, or `None` if it has the same form in several dialects.
fn detect_message(message: &ParsedObject) -> Option<Dialect> {
    let Some(role) = message.get_text("role") else {
        return detect_part(message);
    };
    if role == "tool" || message.has_value("tool_calls") || message.has_value("function_call") {
        return Some(Dialect::OpenAiChat);
    }
    if message.get("stop_reason").is_some() {
        return Some(Dialect::Anthropic);
    }
    let blocks = message.get("content").and_then(JsonText::objects);
    let mut dialects = blocks.into_iter().flatten().flatten().filter_map(|block| {
        Some(match &*block.get_text("type")? {
            "input_text" | "output_text" => Dialect::OpenAiResponses,
            "image_url" | "input_audio" => Dialect::OpenAiChat,
            "tool_use" | "tool_result" | "thinking" | "server_tool_use" => Dialect::Anthropic,
            _ => return None,
        })
    });
    dialects.next()
}

/// Returns whether an unrecognized document may be one of the other lines that session logs have.
pub(crate) fn may_be_log_line(document: &InputDocument) -> bool {
    let object = document.object.as_ref();
    object.is_some_and(|object| object.get_text("type").is_some() && !object.has_value("error"))
}

/// Returns the error for an unrecognized document: what it is, and what was expected.
pub(crate) fn unrecognized_document<'a>(document: &InputDocument<'a>) -> DocumentError<'a> {
    let found = match &document.object {
        Some(object) if object.has_value("error") => return api_error(object),
        Some(object) => describe_object(object),
        None => document.json.kind().to_string(),
    };
    let message = format!("{found} isn't a model response");
    if document.object.as_ref().is_some_and(is_stream_event) {
        return DocumentError::new(document.json, message).with_hint(
            "this is an event of a stream, without its `data: `. To plan or run such lines: \
             `awk 'NF {print \"data: \" $0 \"\\n\"}' FILE | toolq plan`",
        );
    }
    DocumentError::new(document.json, message).with_hint(
        "expected a response, an assistant message, an array of content blocks, a request with its `messages`, or a \
         session log",
    )
}

/// Returns whether an object is what an API sends in one event of a stream.
fn is_stream_event(object: &ParsedObject<'_>) -> bool {
    let kind = object.get_text("type");
    kind.is_some_and(|kind| kind == "message_start" || kind.starts_with("response."))
        || object.get_text("object").as_deref() == Some("chat.completion.chunk")
}

/// Returns the error for a document in which `given`, the dialect that the user named, finds no calls, if its form shows
/// that it is of another dialect.
pub(crate) fn mismatch_error<'a>(
    document: &InputDocument<'a>,
    given: Dialect,
) -> Option<DocumentError<'a>> {
    let Form::Of(dialect) = detect_form(document) else {
        return None;
    };
    if dialect == given {
        return None;
    }
    let message = format!("this has the form of `{dialect}`, but `--from` says `{given}`");
    let hint = format!("write `--from {dialect}`, or leave it out: toolq detects the format");
    Some(DocumentError::new(document.json, message).with_hint(hint))
}

/// Returns the error for an event of another vendor's stream than the user named.
pub(crate) fn vendor_mismatch_error<'a>(
    event: &ParsedObject<'a>,
    found: StreamVendor,
    given: StreamVendor,
) -> DocumentError<'a> {
    let (found, given) = (found.flag(), given.flag());
    let message = format!("this has the form of `{found}`, but `--from` says `{given}`");
    let hint = format!("write `--from {found}`, or leave it out: toolq detects the format");
    DocumentError::new(event.json(), message).with_hint(hint)
}

fn api_error<'a>(object: &ParsedObject<'a>) -> DocumentError<'a> {
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
        "expected events of Anthropic's Messages API, or of OpenAI's chat completions or responses",
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
