//! Streams of chat completions: chunks that refer to a call by its `index`.
//!
//! Servers differ: calls arrive whole or in pieces; some servers repeat ids and names, some use index 0 for every call,
//! and some send another chunk after the last one. Nothing marks the end of a call but the start of the next one, or
//! the finish reason.

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document_error::DocumentError;
use crate::transcript::formats::common::DocumentResult;
use crate::transcript::formats::openai_chat;
use crate::transcript::stream::{CallBuilder, MessageTracker};
use crate::types::AnswerForm;

/// Returns whether only this dialect has such an event.
pub fn is_event(event: &ParsedObject) -> bool {
    event.has_value("choices")
}

/// Reads the first choice of a chunk. The others are alternative responses to the same request.
pub fn read_event<'a>(
    chunk: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    let choices = chunk.get_unique("choices")?.and_then(JsonText::objects);
    let mut choices = choices.into_iter().flatten().flatten();
    let is_first =
        |choice: &ParsedObject| choice.get("index").is_none_or(|index| index.get() == "0");
    let Some(choice) = choices.find(is_first) else {
        return Ok(());
    };
    let delta = choice.get_unique("delta")?.and_then(JsonText::object);
    let tool_calls = delta.as_ref().and_then(|delta| delta.get("tool_calls"));
    let calls = tool_calls.and_then(JsonText::objects);
    if !belongs_to_message(chunk, calls.is_some(), messages)? {
        return Ok(());
    }
    if let Some(delta) = &delta {
        delta.get_unique("tool_calls")?;
        openai_chat::reject_legacy_call(delta)?;
        if openai_chat::has_refusal(delta) {
            messages.mark_refused();
        }
    }
    for piece in calls.into_iter().flatten() {
        read_call_piece(&openai_chat::expect_object(piece)?, messages)?;
    }
    match choice.get_unique_text("finish_reason")?.as_deref() {
        // Some servers send an empty reason until there is one.
        None | Some("") => {}
        Some("error") => {
            return Err(DocumentError::new(
                choice.json(),
                "the server ended the stream with an error",
            ));
        }
        Some(reason) => {
            messages.set_cut_off(reason == "length");
            if reason == openai_chat::REFUSAL_REASON {
                messages.mark_refused();
            }
            messages.close_message();
        }
    }
    Ok(())
}

/// Returns whether a chunk belongs to the open message, opening one if there is none. After the end of a message, some
/// servers send another chunk of it, without calls.
fn belongs_to_message<'a>(
    chunk: &ParsedObject<'a>,
    has_calls: bool,
    messages: &mut MessageTracker,
) -> Result<bool, DocumentError<'a>> {
    let id = chunk.get_unique_text("id")?;
    let name = id.as_deref().unwrap_or_default();
    let failure = |message| Err(DocumentError::new(chunk.json(), message));
    if messages.is_open() {
        if messages.open_message_id() == name {
            return Ok(true);
        }
        return failure("another message begins before the end of this one");
    }
    if messages.last_closed_id() == Some(name) {
        if has_calls {
            return failure("a call after the end of its message");
        }
        return Ok(false);
    }
    messages.open_message(AnswerForm::OpenAiChat, name.to_owned());
    Ok(true)
}

/// Reads an entry of `tool_calls`.
fn read_call_piece<'a>(
    call: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    let function = call.get_unique("function")?.and_then(JsonText::object);
    let non_empty = |text: Option<std::borrow::Cow<str>>| {
        text.filter(|text| !text.is_empty())
            .map(Into::<String>::into)
    };
    let id = non_empty(call.get_unique_text("id")?);
    let name = function
        .as_ref()
        .map(|function| function.get_unique_text("name"))
        .transpose()?;
    let name = non_empty(name.flatten());
    let index = call
        .get_unique("index")?
        .and_then(|index| index.get().parse().ok());
    let arguments = function
        .as_ref()
        .map(|function| function.get_unique("arguments"))
        .transpose()?;
    let arguments = arguments.flatten().filter(|arguments| !arguments.is_null());
    let may_begin = name.is_some() && arguments.is_some_and(has_arguments);
    let known_call = find_call(index, id.as_deref(), may_begin, messages);
    let at = known_call.unwrap_or_else(|| {
        messages.complete_all_calls();
        messages.begin_call(CallBuilder::new(index, id.clone(), name.clone()))
    });
    if let Some(call) = messages.call_mut(at) {
        call.id = call.id.take().or(id);
        call.name = call.name.take().or(name);
    }
    match arguments {
        None => Ok(()),
        Some(json) if json.kind() == "a string" => {
            let piece = json
                .to_text()
                .ok_or_else(|| DocumentError::new(json, "`arguments` has a lone surrogate"))?;
            crate::transcript::formats::common::add_piece(call, at, &piece, messages)
        }
        // Some servers send an object, which is complete.
        Some(json) => crate::transcript::formats::common::add_piece(call, at, json.get(), messages),
    }
}

/// Returns the position of the call that a piece belongs to, or `None` if the piece starts a new call. `may_begin` says
/// whether it has everything that a new call needs.
fn find_call(
    index: Option<u64>,
    id: Option<&str>,
    may_begin: bool,
    messages: &mut MessageTracker,
) -> Option<usize> {
    let at = messages.find_call(index)?;
    let known = messages.call_mut(at)?;
    let begins = may_begin && known.seems_complete();
    (!begins_another_call((known.id.as_deref(), id), begins)).then_some(at)
}

/// Returns whether a piece starts a new call instead of continuing the known one with its index.
///
/// `ids` are those of the known call and of the piece. If both have one, the ids decide. Otherwise `may_begin` does: the
/// piece has a name and arguments, and the arguments of the known call have their end.
pub fn begins_another_call(ids: (Option<&str>, Option<&str>), may_begin: bool) -> bool {
    match ids {
        (Some(known), Some(id)) => known != id,
        (_, None) | (None, Some(_)) => may_begin,
    }
}

/// Returns whether arguments are more than whitespace.
fn has_arguments(arguments: JsonText) -> bool {
    arguments
        .to_text()
        .is_none_or(|text| !text.trim().is_empty())
}
