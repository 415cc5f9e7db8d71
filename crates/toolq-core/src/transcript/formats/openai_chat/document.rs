//! `OpenAI` chat completions, which many servers speak: a response, a message, an array of messages, a request; also the
//! trajectories of benchmarks, which keep such an array under `traj` or `history`.

use crate::json::{Input, Json, Object, Objects};
use crate::transcript::document::Document;
use crate::transcript::document_error::Complaint;
use crate::transcript::formats::common::Read;
use crate::transcript::index_builder::Turns;
use crate::transcript::raw_call::Asked;
use crate::types::{Dialect, Form, Recorded};

/// Where a request or a trajectory keeps its messages.
const HISTORIES: [&str; 3] = ["messages", "traj", "history"];

/// Whether only this dialect has such an object.
pub fn is_document(object: &Object) -> bool {
    let trajectory = |key| {
        object
            .get(key)
            .is_some_and(|list| list.kind() == "an array")
    };
    object.has("choices") || trajectory("traj") || trajectory("history")
}

pub fn read<'a>(document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    if let Some(mut items) = document.json.objects() {
        return items.try_for_each(|item| value(&an_object(item)?, turns));
    }
    match &document.object {
        Some(object) => value(object, turns),
        None => Err(Complaint::no_object("a message", document.json)),
    }
}

pub fn an_object<'a>(item: Result<Object<'a>, Json<'a>>) -> Result<Object<'a>, Complaint<'a>> {
    item.map_err(|other| Complaint::no_object("a message or tool call", other))
}

/// A response, a message, or what holds messages.
fn value<'a>(object: &Object<'a>, turns: &mut Turns) -> Read<'a> {
    if object.has("choices") {
        return response(object, turns);
    }
    if object.has("role") {
        return message(object, turns);
    }
    let Some(mut history) = history(object)? else {
        let what = "this is no response, message or request";
        return Err(Complaint::new(object.json(), what));
    };
    turns.request();
    history.try_for_each(|entry| message(&an_object(entry)?, turns))
}

/// The messages that an object holds.
fn history<'a>(object: &Object<'a>) -> Result<Option<Objects<'a>>, Complaint<'a>> {
    for key in HISTORIES {
        if let Some(messages) = object.once(key)?.and_then(Json::objects) {
            return Ok(Some(messages));
        }
    }
    Ok(None)
}

/// The first choice: the others are other answers to the same question.
fn response<'a>(response: &Object<'a>, turns: &mut Turns) -> Read<'a> {
    let choices = response.once("choices")?.unwrap_or(response.json());
    let choice = choices
        .objects()
        .and_then(|mut choices| choices.next()?.ok())
        .ok_or_else(|| Complaint::new(choices, "there is no choice among `choices`"))?;
    let message = choice
        .once("message")?
        .and_then(Json::object)
        .ok_or_else(|| {
            Complaint::new(choice.json(), "the choice has no `message`")
                .with_hint("of a stream, the whole answer is needed, not its chunks")
        })?;
    let reason = choice.text_once("finish_reason")?;
    answer(&message, reason.as_deref() == Some("length"), turns)
}

fn message<'a>(message: &Object<'a>, turns: &mut Turns) -> Read<'a> {
    match message.text_once("role")?.as_deref() {
        Some("assistant") => answer(message, false, turns),
        Some("tool") => {
            results(message, turns);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A turn of the calls of one message. They stand behind its text, so where it was cut off, the last one was.
fn answer<'a>(message: &Object<'a>, cut_off: bool, turns: &mut Turns) -> Read<'a> {
    let turn = turns.open(Dialect::OpenAiChat, Form::OpenAiChat);
    let Some(calls) = message.once("tool_calls")?.filter(|calls| !calls.is_null()) else {
        return no_old_call(message);
    };
    let calls = calls
        .objects()
        .ok_or_else(|| Complaint::no_list("tool_calls", calls))?;
    for call in calls {
        let call = an_object(call)?;
        turns.call(turn, call.json(), call.text("id").as_deref())?;
        turns.cut_off(turn, cut_off);
    }
    Ok(())
}

/// The call of 2023, which has no id to answer to, is refused rather than overlooked.
pub fn no_old_call<'a>(message: &Object<'a>) -> Read<'a> {
    match message.get("function_call") {
        Some(call) if call.kind() == "an object" => {
            let complaint = Complaint::new(call, "`function_call` was replaced by `tool_calls`");
            Err(complaint.with_hint("declare the functions under `tools` of the request"))
        }
        _ => Ok(()),
    }
}

/// Tells of the call that a `tool` message answers, or of several (SWE-agent).
fn results(message: &Object, turns: &mut Turns) {
    let several = message.list("tool_call_ids").unwrap_or_default();
    let one = message.get("tool_call_id");
    for id in several.into_iter().chain(one).filter_map(Json::text) {
        turns.result(&id, message.json());
    }
}

/// Reads an entry of `tool_calls`.
pub fn asked(call: &Object) -> Asked {
    let id = call.text("id");
    let Some(function) = call.object("function") else {
        return Asked::new(id, None, Ok(Input::empty()));
    };
    let arguments = crate::transcript::formats::common::arguments(function.get("arguments"));
    Asked::new(id, function.text("name"), arguments)
        .unless_twice(&function)
        .unless_twice(call)
}

/// Reads a `tool` message.
pub fn answered(message: &Object) -> Recorded {
    crate::transcript::formats::common::plain(message.get("content"))
}
