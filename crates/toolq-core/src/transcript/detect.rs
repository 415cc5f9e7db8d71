//! Detects the dialect of a document by its form alone.

use crate::json::{JsonText, ObjectIter, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentError;
use crate::transcript::formats::recognize;
use crate::types::Dialect;

/// What the form of a document says about its dialect.
enum Form {
    /// Only this dialect has it.
    Of(Dialect),
    /// A conversation that has only text so far, which looks the same in several dialects.
    OnlyText,
    Unknown,
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
    if let Some(dialect) = recognize(object) {
        return Form::Of(dialect);
    }
    match object.get("messages").and_then(JsonText::objects) {
        _ if object.has_value("role") => Form::OnlyText,
        Some(messages) => detect_conversation(messages),
        None => Form::Unknown,
    }
}

fn detect_list(mut items: ObjectIter) -> Form {
    match items.next() {
        None => Form::OnlyText,
        Some(Ok(first)) if first.has_value("role") => {
            detect_conversation([Ok(first)].into_iter().chain(items))
        }
        Some(Ok(first)) => recognize(&first).map_or(Form::Unknown, Form::Of),
        Some(Err(_)) => Form::Unknown,
    }
}

/// Returns the dialect of the first message of the model that shows one, or else of any: only the model's messages have calls, and
/// others may have been put in from elsewhere.
fn detect_conversation<'a>(
    messages: impl Iterator<Item = Result<ParsedObject<'a>, JsonText<'a>>>,
) -> Form {
    let mut shown = Form::OnlyText;
    for message in messages.flatten() {
        let is_model = matches!(
            message.get_text("role").as_deref(),
            Some("assistant" | "model")
        );
        match recognize(&message) {
            Some(dialect) if is_model => return Form::Of(dialect),
            Some(dialect) if matches!(shown, Form::OnlyText) => shown = Form::Of(dialect),
            _ => {}
        }
    }
    shown
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
