//! Streams of chat completions: chunks that refer to a call by its `index`.
//!
//! Servers differ: calls arrive whole or in pieces; some servers repeat ids and names, some use index 0 for every call,
//! and some send another chunk after the last one, or a new id with every chunk. Nothing marks the end of a call but the
//! start of the next one, or the finish reason.

use crate::json::{JsonKind, JsonText, ObjectIter, ParsedObject};
use crate::transcript::document_error::{DocumentError, DocumentResult};
use crate::transcript::formats::call_input::add_input_piece;
use crate::transcript::formats::openai_chat;
use crate::transcript::stream::{Block, MessageTracker};
use crate::transcript::unrecognized;
use crate::types::AnswerForm;

/// Returns whether only this dialect has such an event.
pub fn is_event(event: &ParsedObject) -> bool {
    event.has_value("choices")
}

/// Returns the first choice of a chunk. The others are alternative responses to the same request.
fn first_choice<'a>(
    chunk: &ParsedObject<'a>,
) -> Result<Option<ParsedObject<'a>>, DocumentError<'a>> {
    let choices = chunk.get_unique("choices")?.and_then(JsonText::objects);
    let mut choices = choices.into_iter().flatten().flatten();
    let is_first =
        |choice: &ParsedObject| choice.get("index").is_none_or(|index| index.get() == "0");
    Ok(choices.find(is_first))
}

/// Reads the first choice of a chunk.
pub fn read_event<'a>(
    chunk: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    let Some(choice) = first_choice(chunk)? else {
        return Ok(());
    };
    let delta = choice.get_unique("delta")?.and_then(JsonText::object);
    if !belongs_to_message(chunk, delta.as_ref(), messages)? {
        return Ok(());
    }
    if let Some(delta) = &delta {
        openai_chat::reject_legacy_call(delta)?;
        if openai_chat::has_refusal(delta) {
            messages.mark_refused();
        }
        for piece in call_pieces(delta)?.into_iter().flatten() {
            read_call_piece(&openai_chat::expect_object(piece)?, messages)?;
        }
    }
    let reason = choice.get_unique("finish_reason")?;
    match reason.and_then(JsonText::to_text).as_deref() {
        // Some servers send an empty reason until there is one.
        None | Some("") => {}
        Some("error") => return Err(unrecognized::stream_error(&choice)),
        Some(text) => {
            messages.set_cut_off(text == "length");
            if text == openai_chat::REFUSAL_REASON {
                messages.mark_refused();
            }
            messages.end_message();
        }
    }
    Ok(())
}

fn call_pieces<'a>(delta: &ParsedObject<'a>) -> Result<Option<ObjectIter<'a>>, DocumentError<'a>> {
    let pieces = delta.get_unique("tool_calls")?;
    Ok(pieces.and_then(JsonText::objects))
}

/// Returns whether a chunk belongs to the open message. Opens a message if none is open. After the end of a message,
/// some servers send another chunk of it, without calls.
///
/// A different id alone doesn't begin another message, because some servers change it with every chunk. It must come
/// with a role.
fn belongs_to_message<'a>(
    chunk: &ParsedObject<'a>,
    delta: Option<&ParsedObject<'a>>,
    messages: &mut MessageTracker,
) -> Result<bool, DocumentError<'a>> {
    let id = chunk.get_unique_text("id")?;
    let name = id.as_deref().unwrap_or_default();
    let has_role = delta.is_some_and(|delta| delta.has_value("role"));
    let has_calls = delta.map(call_pieces).transpose()?.flatten().is_some();
    let failure = |message| Err(DocumentError::new(chunk.json(), message));
    if messages.is_open() {
        if !has_role || messages.open_message_id() == name {
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
    if messages.last_closed_id().is_some() && !has_role && !has_calls {
        return Ok(false);
    }
    messages.open_message(AnswerForm::OpenAiChat, name.to_owned());
    messages.set_origin(chunk);
    Ok(true)
}

/// Reads an entry of `tool_calls`.
fn read_call_piece<'a>(
    call: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    let function = call.get_object("function");
    for object in [Some(call), function.as_ref()].into_iter().flatten() {
        if let Some(key) = object.duplicate_key() {
            let message = format!(
                "the key `{}` appears twice in one object",
                key.escape_debug()
            );
            return Err(DocumentError::new(object.json(), message));
        }
    }
    let non_empty = |text: Option<std::borrow::Cow<str>>| {
        text.filter(|text| !text.is_empty())
            .map(Into::<String>::into)
    };
    let id = non_empty(call.get_text("id"));
    let member = |name| function.as_ref().and_then(|function| function.get(name));
    let name = non_empty(member("name").and_then(JsonText::to_text));
    let arguments = member("arguments").filter(|arguments| !arguments.is_null());
    let index = call.get("index").and_then(|index| index.get().parse().ok());
    let may_begin = name.is_some() && arguments.is_some_and(has_arguments);
    let at = find_call(index, id.as_deref(), may_begin, messages).unwrap_or_else(|| {
        complete_last_call(messages);
        let block = Block::call(index, id.clone(), name.clone());
        messages.begin_block(block)
    });
    if let Some(call) = messages.call_mut(at).filter(|call| !call.is_complete) {
        call.id = call.id.take().or(id);
        call.name = call.name.take().or(name);
    }
    match arguments {
        None => Ok(()),
        Some(json) if json.kind() == JsonKind::String => {
            let piece = json
                .to_text()
                .ok_or_else(|| DocumentError::new(json, "`arguments` has a lone surrogate"))?;
            add_input_piece(call, at, &piece, messages)
        }
        // Some servers send an object, which is complete.
        Some(json) => add_input_piece(call, at, json.get(), messages),
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
    let at = match index {
        Some(index) => messages.find_call(index),
        None => messages.last_block(),
    }?;
    let known = messages.call_mut(at)?;
    let begins = may_begin && known.seems_complete();
    (!begins_another_call((known.id.as_deref(), id), begins)).then_some(at)
}

/// Marks the last call as complete because another one starts, unless the end of its input is yet to come: some servers
/// alternate between calls.
fn complete_last_call(messages: &mut MessageTracker) {
    let last = messages.last_block();
    if let Some(last) = last
        && messages
            .call_mut(last)
            .is_some_and(|call| call.seems_complete())
    {
        messages.complete_block(last);
    }
}

/// Returns whether a piece starts a new call instead of continuing the known one with its index.
///
/// `ids` are those of the known call and of the piece. If both have one, the ids decide. Otherwise `may_begin` does: the
/// piece has a name and arguments, and the arguments of the known call have their end.
fn begins_another_call(ids: (Option<&str>, Option<&str>), may_begin: bool) -> bool {
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
