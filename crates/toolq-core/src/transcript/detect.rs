//! Detects the dialect of a document by its form alone.

use crate::json::{JsonText, ObjectIter, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentError;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::claude_code;
use crate::transcript::formats::codex;
use crate::transcript::formats::openai_chat;
use crate::transcript::formats::openai_responses;
use crate::types::Dialect;

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
