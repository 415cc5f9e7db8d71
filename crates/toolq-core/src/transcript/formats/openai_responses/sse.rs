//! The stream of `OpenAI` responses: items are added, grow and are done by their `output_index`, each ending with all of
//! it once more.

use crate::json::{InputFault, Json, Object};
use crate::transcript::document_error::Complaint;
use crate::transcript::formats::common::Read;
use crate::transcript::stream::{Arriving, Messages};
use crate::types::Form;

/// Whether only this dialect has such an event.
pub fn is_event(event: &Object) -> bool {
    event
        .text("type")
        .is_some_and(|kind| kind.starts_with("response."))
}

/// Reads one event; those that are not about calls or the end are passed over.
pub fn event<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let kind = event.text_once("type")?;
    let kind = kind
        .as_deref()
        .and_then(|kind| kind.strip_prefix("response."));
    match kind {
        Some("created" | "queued" | "in_progress") => start(event, messages),
        Some(_) if !messages.is_open() => Ok(()),
        Some("output_item.added") => added(event, messages),
        Some("output_item.done") => done(event, messages),
        Some("function_call_arguments.delta") => piece(event, messages),
        Some("function_call_arguments.done") => match messages.find(Some(index(event)?)) {
            Some(call) => arguments(event, call, messages),
            None => Ok(()),
        },
        Some("completed") => {
            messages.close();
            Ok(())
        }
        Some("incomplete") => {
            messages.cut_off(true);
            messages.close();
            Ok(())
        }
        Some("failed" | "cancelled") => Err(failed(event)),
        _ => Ok(()),
    }
}

fn start<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let response = event.once("response")?.and_then(Json::object);
    let id = response.as_ref().map(|response| response.text_once("id"));
    let id = id.transpose()?.flatten();
    let name = id.as_deref().unwrap_or_default();
    if !messages.is_open() {
        messages.open(Form::OpenAiResponses, name.to_owned());
    } else if messages.name() != name {
        let what = "another response begins before the end of this one";
        return Err(Complaint::new(event.json(), what));
    }
    Ok(())
}

fn added<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let index = index(event)?;
    match item(event)? {
        Some(item) => {
            begin(&item, index, messages);
        }
        None => messages.other(),
    }
    Ok(())
}

/// The whole item. What it says counts, whatever pieces came.
fn done<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let index = index(event)?;
    let Some(item) = item(event)? else {
        return Ok(());
    };
    let call = messages.find(Some(index));
    let call = call.unwrap_or_else(|| begin(&item, index, messages));
    arguments(&item, call, messages)?;
    messages.cut_off(item.text_once("status")?.as_deref() == Some("incomplete"));
    if let Some(call) = messages.call(call) {
        call.fault = item.twice().map(InputFault::twice);
    }
    messages.seal(call);
    Ok(())
}

/// The item of an event, if it is a call.
fn item<'a>(event: &Object<'a>) -> Result<Option<Object<'a>>, Complaint<'a>> {
    let item = event.once("item")?.and_then(Json::object);
    let item = item.ok_or_else(|| Complaint::new(event.json(), "the event has no `item`"))?;
    let is_call = item.text_once("type")?.as_deref() == Some("function_call");
    Ok(is_call.then_some(item))
}

fn begin(item: &Object, index: u64, messages: &mut Messages) -> usize {
    let text = |key| item.text(key).map(Into::into);
    messages.begin(Arriving::new(Some(index), text("call_id"), text("name")))
}

fn piece<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let (Some(call), Some(delta)) = (messages.find(Some(index(event)?)), event.once("delta")?)
    else {
        return Ok(());
    };
    let piece = delta
        .text()
        .ok_or_else(|| Complaint::new(delta, "`delta` must be a text"))?;
    crate::transcript::formats::common::piece(event, call, &piece, messages)
}

/// The whole arguments, which stand in `object`.
fn arguments<'a>(object: &Object<'a>, call: usize, messages: &mut Messages) -> Read<'a> {
    let Some(arguments) = object.once("arguments")? else {
        return Ok(());
    };
    match arguments.kind() {
        "a string" => {
            let text = arguments.text();
            let text = text.ok_or_else(|| Complaint::new(arguments, "`arguments` is no text"))?;
            messages.replace(call, &text);
        }
        _ => messages.replace(call, arguments.get()),
    }
    Ok(())
}

/// Which item an event is about.
fn index<'a>(event: &Object<'a>) -> Result<u64, Complaint<'a>> {
    let index = event
        .once("output_index")?
        .and_then(|index| index.get().parse().ok());
    index.ok_or_else(|| Complaint::new(event.json(), "the event has no `output_index`"))
}

fn failed<'a>(event: &Object<'a>) -> Complaint<'a> {
    match event.get("response").and_then(Json::object) {
        Some(response) => crate::transcript::detect::error_event(&response),
        None => Complaint::new(event.json(), "the response failed"),
    }
}
