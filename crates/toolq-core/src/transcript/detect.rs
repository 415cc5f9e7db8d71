//! Which dialect a document has, by its form alone.

use crate::json::{Json, Object, Objects};
use crate::transcript::document::Document;
use crate::transcript::document_error::Complaint;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::claude_code;
use crate::transcript::formats::codex;
use crate::transcript::formats::openai_chat;
use crate::transcript::formats::openai_responses;
use crate::types::Dialect;

/// How many keys of a strange object are named.
const KEYS_SHOWN: usize = 6;
/// How many characters of a strange text are shown.
const TEXT_SHOWN: usize = 100;

/// The dialect of a document; none where it is no form of any. A conversation that only has texts so far counts as
/// Anthropic's: nothing is asked in it.
pub(crate) fn recognise(document: &Document) -> Option<Dialect> {
    match (&document.object, document.json.objects()) {
        (Some(whole), _) => object(whole),
        (None, Some(items)) => list(items),
        (None, None) => None,
    }
}

fn object(object: &Object) -> Option<Dialect> {
    if crate::transcript::formats::is_record(object) {
        Some(Dialect::Toolq)
    } else if codex::is_line(object) {
        Some(Dialect::Codex)
    } else if claude_code::is_line(object) {
        Some(Dialect::ClaudeCode)
    } else if object.has("role") {
        Some(message(object).unwrap_or(Dialect::Anthropic))
    } else if let Some(messages) = object.get("messages").and_then(Json::objects) {
        Some(conversation(messages))
    } else {
        part(object)
    }
}

fn list(mut items: Objects) -> Option<Dialect> {
    let Some(first) = items.next() else {
        return Some(Dialect::Anthropic);
    };
    let first = first.ok()?;
    if !first.has("role") {
        return part(&first);
    }
    Some(message(&first).unwrap_or_else(|| conversation(items)))
}

/// The dialect of the first message that tells.
fn conversation(messages: Objects) -> Dialect {
    let mut told = messages.flatten().filter_map(|entry| message(&entry));
    told.next().unwrap_or(Dialect::Anthropic)
}

/// A block, an item, or what holds choices or items.
fn part(object: &Object) -> Option<Dialect> {
    let kind = object.text("type");
    if kind.is_some_and(|kind| anthropic::is_block(&kind)) {
        Some(Dialect::Anthropic)
    } else if openai_chat::is_document(object) {
        Some(Dialect::OpenAiChat)
    } else {
        openai_responses::is_document(object).then_some(Dialect::OpenAiResponses)
    }
}

/// The dialect of a message; none where it is the same in several.
fn message(message: &Object) -> Option<Dialect> {
    let Some(role) = message.text("role") else {
        return part(message);
    };
    if role == "tool" || message.has("tool_calls") || message.has("function_call") {
        return Some(Dialect::OpenAiChat);
    }
    if message.get("stop_reason").is_some() {
        return Some(Dialect::Anthropic);
    }
    let blocks = message.get("content").and_then(Json::objects);
    let mut told = blocks.into_iter().flatten().flatten().filter_map(|block| {
        Some(match &*block.text("type")? {
            "input_text" | "output_text" => Dialect::OpenAiResponses,
            "image_url" | "input_audio" => Dialect::OpenAiChat,
            "tool_use" | "tool_result" | "thinking" | "server_tool_use" => Dialect::Anthropic,
            _ => return None,
        })
    });
    told.next()
}

/// Whether an unknown document may be one of the lines that session logs have beside messages.
pub(crate) fn may_be_log_line(document: &Document) -> bool {
    let object = document.object.as_ref();
    object.is_some_and(|object| object.text("type").is_some() && !object.has("error"))
}

/// What an unknown document is, and what was expected.
pub(crate) fn unknown<'a>(document: &Document<'a>) -> Complaint<'a> {
    let found = match &document.object {
        Some(object) if object.has("error") => return api_error(object),
        Some(object) => described(object),
        None => document.json.kind().to_owned(),
    };
    let message = format!("{found} is no form of a model's answer");
    Complaint::new(document.json, message).with_hint(
        "expected is a response, an assistant message, an array of content blocks, a request with its `messages`, or a \
         session log",
    )
}

fn api_error<'a>(object: &Object<'a>) -> Complaint<'a> {
    let said = said_of_error(object);
    let message = format!("this is an API's error{said}, not a model's answer");
    Complaint::new(object.json(), message).with_hint("the request failed: look at what it sent")
}

/// An event by which the API ends a stream.
pub(crate) fn error_event<'a>(event: &Object<'a>) -> Complaint<'a> {
    let said = said_of_error(event);
    let message = format!("the API ends the stream with an error{said}");
    Complaint::new(event.json(), message)
}

/// An event of nobody's.
pub(crate) fn unknown_event<'a>(event: &Object<'a>) -> Complaint<'a> {
    let message = format!("{} is no event of a model's stream", described(event));
    Complaint::new(event.json(), message).with_hint(
        "expected are the events of Anthropic's Messages API, or of OpenAI's chat completions or responses",
    )
}

/// What the API said of its error: its kind and its message, in brackets.
fn said_of_error(object: &Object) -> String {
    let error = object.object("error");
    let error = error.as_ref().unwrap_or(object);
    let part = |key| error.text(key).filter(|text| text != "error");
    let said = [
        part("type").or(part("code")),
        part("message"),
        object.text("error"),
    ];
    let said: Vec<String> = said.iter().flatten().map(|text| shown(text)).collect();
    match said.as_slice() {
        [] => String::new(),
        said => format!(" ({})", said.join(": ")),
    }
}

/// An object by its keys.
fn described(object: &Object) -> String {
    let keys = object
        .members()
        .iter()
        .map(|(key, _)| format!("`{}`", shown(key)));
    let keys: Vec<String> = keys.take(KEYS_SHOWN).collect();
    if keys.is_empty() {
        return "an empty object".to_owned();
    }
    let more = if object.members().len() > KEYS_SHOWN {
        ", …"
    } else {
        ""
    };
    format!("an object with the keys {}{more}", keys.join(", "))
}

/// A text of the input, short and without control characters.
fn shown(text: &str) -> String {
    text.chars()
        .take(TEXT_SHOWN)
        .flat_map(char::escape_debug)
        .collect()
}
