//! `OpenAI` responses: a response, a request, an array of items, one item. Calls are items of their own: a turn is the run
//! of the model's items between two that are not the model's.

use crate::json::{Json, Object};
use crate::transcript::document::Document;
use crate::transcript::document_error::Complaint;
use crate::transcript::formats::common::Read;
use crate::transcript::index_builder::Turns;
use crate::transcript::raw_call::Asked;
use crate::types::{Dialect, Form, Recorded};

/// Whether a value of this `type` is an item of a conversation.
fn is_item(kind: &str) -> bool {
    matches!(kind, "reasoning" | "item_reference")
        || kind.ends_with("_call")
        || kind.ends_with("_call_output")
}

/// Whether only this dialect has such an object.
pub fn is_document(object: &Object) -> bool {
    let kind_of = |key| object.get(key).map(Json::kind);
    match object.text("type") {
        Some(kind) => is_item(&kind),
        None => {
            object.text("object").as_deref() == Some("response")
                || kind_of("output") == Some("an array")
                || matches!(kind_of("input"), Some("an array" | "a string"))
        }
    }
}

pub fn read<'a>(document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    if let Some(found) = document.json.objects() {
        return items(found, turns);
    }
    let Some(object) = &document.object else {
        return Err(Complaint::no_object("an item", document.json));
    };
    if object.has("type") || object.has("role") {
        return item(object, turns);
    }
    if let Some(output) = object.once("output")? {
        return response(object, output, turns);
    }
    let Some(input) = object.once("input")? else {
        let what = "this is no response, request or item";
        return Err(Complaint::new(document.json, what));
    };
    turns.request();
    items(input.objects().into_iter().flatten(), turns)
}

/// Its output is one turn, whatever the API did by itself in between.
fn response<'a>(response: &Object<'a>, output: Json<'a>, turns: &mut Turns) -> Read<'a> {
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        return Err(Complaint::new(error, "the API answered with an error"));
    }
    let output = output
        .objects()
        .ok_or_else(|| Complaint::no_list("output", output))?;
    let turn = turns.open(Dialect::OpenAiResponses, Form::OpenAiResponses);
    let mut ends_in_call = false;
    for item in output {
        ends_in_call = call(&an_item(item)?, turn, turns)?;
    }
    if response.text_once("status")?.as_deref() == Some("incomplete") {
        turns.cut_off(turn, ends_in_call);
    }
    Ok(())
}

fn items<'a>(
    items: impl IntoIterator<Item = Result<Object<'a>, Json<'a>>>,
    turns: &mut Turns,
) -> Read<'a> {
    turns.close_running();
    for next in items {
        item(&an_item(next)?, turns)?;
    }
    turns.close_running();
    Ok(())
}

fn an_item<'a>(item: Result<Object<'a>, Json<'a>>) -> Result<Object<'a>, Complaint<'a>> {
    item.map_err(|other| Complaint::no_object("an item", other))
}

/// One item of a conversation.
pub fn item<'a>(item: &Object<'a>, turns: &mut Turns) -> Read<'a> {
    let others = item
        .text_once("role")?
        .is_some_and(|role| role != "assistant");
    let result = item.text_once("type")?.as_deref() == Some("function_call_output");
    if others || result {
        turns.close_running();
        if let Some(id) = item.text("call_id").filter(|_| result) {
            turns.result(&id, item.json());
        }
        return Ok(());
    }
    let turn = turns.open_running(Dialect::OpenAiResponses, Form::OpenAiResponses);
    call(item, turn, turns).map(drop)
}

/// Adds `item` to its turn if it is a call; whether it is one.
fn call<'a>(item: &Object<'a>, turn: usize, turns: &mut Turns) -> Result<bool, Complaint<'a>> {
    let is_call = item.text_once("type")?.as_deref() == Some("function_call");
    if is_call {
        turns.call(turn, item.json(), item.text("call_id").as_deref())?;
    }
    let incomplete = item.text_once("status")?.as_deref() == Some("incomplete");
    turns.cut_off(turn, is_call && incomplete);
    Ok(is_call)
}

/// Reads a `function_call` item. Results name its `call_id`; its `id` is the item's own.
pub fn asked(item: &Object) -> Asked {
    let arguments = crate::transcript::formats::common::arguments(item.get("arguments"));
    Asked::new(item.text("call_id"), item.text("name"), arguments).unless_twice(item)
}

/// Reads a `function_call_output` item.
pub fn answered(item: &Object) -> Recorded {
    crate::transcript::formats::common::plain(item.get("output"))
}
