//! The stream of chat completions: chunks, in which calls are told apart by `index`. Servers differ: a call comes whole or
//! in pieces; some repeat ids and names, some count every call 0, some send a chunk behind the last.
//!
//! Nothing says that a call is whole but the begin of the next one, or the reason to stop.

use crate::json::{Json, Object};
use crate::transcript::document_error::Complaint;
use crate::transcript::formats::common::Read;
use crate::transcript::formats::openai_chat;
use crate::transcript::stream::{Arriving, Messages};
use crate::types::Form;

/// Whether only this dialect has such an event.
pub fn is_event(event: &Object) -> bool {
    event.has("choices")
}

/// Reads one chunk: what it has of the first choice, the others being other answers to the same question.
pub fn event<'a>(chunk: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let choices = chunk.once("choices")?.and_then(Json::objects);
    let mut choices = choices.into_iter().flatten().flatten();
    let is_first = |choice: &Object| choice.get("index").is_none_or(|index| index.get() == "0");
    let Some(choice) = choices.find(is_first) else {
        return Ok(());
    };
    let delta = choice.once("delta")?.and_then(Json::object);
    let asks = delta.as_ref().and_then(|delta| delta.get("tool_calls"));
    let calls = asks.and_then(Json::objects);
    if !belongs(chunk, calls.is_some(), messages)? {
        return Ok(());
    }
    if let Some(delta) = &delta {
        delta.once("tool_calls")?;
        openai_chat::no_old_call(delta)?;
    }
    for piece in calls.into_iter().flatten() {
        call(&openai_chat::an_object(piece)?, messages)?;
    }
    match choice.text_once("finish_reason")?.as_deref() {
        // Some servers send an empty one until there is one.
        None | Some("") => {}
        Some("error") => {
            return Err(Complaint::new(
                choice.json(),
                "the server ended the stream with an error",
            ));
        }
        Some(reason) => {
            messages.cut_off(reason == "length");
            messages.close();
        }
    }
    Ok(())
}

/// Whether a chunk belongs to the message that is open, which is opened where there is none. Behind the end of a message
/// some servers send one more chunk of it, which asks for nothing.
fn belongs<'a>(
    chunk: &Object<'a>,
    asks: bool,
    messages: &mut Messages,
) -> Result<bool, Complaint<'a>> {
    let id = chunk.text_once("id")?;
    let name = id.as_deref().unwrap_or_default();
    let complaint = |what| Err(Complaint::new(chunk.json(), what));
    if messages.is_open() {
        if messages.name() == name {
            return Ok(true);
        }
        return complaint("another message begins before the end of this one");
    }
    if messages.closed() == Some(name) {
        if asks {
            return complaint("a call behind the end of its message");
        }
        return Ok(false);
    }
    messages.open(Form::OpenAiChat, name.to_owned());
    Ok(true)
}

/// Reads an entry of `tool_calls`.
fn call<'a>(call: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let function = call.once("function")?.and_then(Json::object);
    let given = |text: Option<std::borrow::Cow<str>>| {
        text.filter(|text| !text.is_empty())
            .map(Into::<String>::into)
    };
    let id = given(call.text_once("id")?);
    let name = function
        .as_ref()
        .map(|function| function.text_once("name"))
        .transpose()?;
    let name = given(name.flatten());
    let index = call
        .once("index")?
        .and_then(|index| index.get().parse().ok());
    let arguments = function
        .as_ref()
        .map(|function| function.once("arguments"))
        .transpose()?;
    let arguments = arguments.flatten().filter(|arguments| !arguments.is_null());
    let begins = name.is_some() && arguments.is_some_and(has_input);
    let known = known(index, id.as_deref(), begins, messages);
    let at = known.unwrap_or_else(|| {
        messages.seal_all();
        messages.begin(Arriving::new(index, id.clone(), name.clone()))
    });
    if let Some(call) = messages.call(at) {
        call.id = call.id.take().or(id);
        call.name = call.name.take().or(name);
    }
    match arguments {
        None => Ok(()),
        Some(json) if json.kind() == "a string" => {
            let piece = json
                .text()
                .ok_or_else(|| Complaint::new(json, "`arguments` is no text"))?;
            crate::transcript::formats::common::piece(call, at, &piece, messages)
        }
        // Some servers send an object, which is whole.
        Some(json) => crate::transcript::formats::common::piece(call, at, json.get(), messages),
    }
}

/// The call that a piece belongs to; none where it begins one. `begins` is whether it has what a call begins with.
fn known(
    index: Option<u64>,
    id: Option<&str>,
    begins: bool,
    messages: &mut Messages,
) -> Option<usize> {
    let at = messages.find(index)?;
    let known = messages.call(at)?;
    let begins = begins && known.seems_whole();
    (!begins_another((known.id.as_deref(), id), begins)).then_some(at)
}

/// Whether a piece begins another call than the known one of its index. Ids say so, that of the known call and that of
/// the piece, if it has one; else `begins`: the piece has a name and arguments, and those of the known call are at their end.
pub fn begins_another(ids: (Option<&str>, Option<&str>), begins: bool) -> bool {
    match ids {
        (Some(known), Some(id)) => known != id,
        (_, None) | (None, Some(_)) => begins,
    }
}

/// Whether there is more than white space.
fn has_input(arguments: Json) -> bool {
    arguments.text().is_none_or(|text| !text.trim().is_empty())
}
