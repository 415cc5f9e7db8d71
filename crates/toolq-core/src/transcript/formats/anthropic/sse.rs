//! Anthropic's stream: blocks begin, grow and stop by their `index`; why the message stopped stands in `message_delta`,
//! shortly before its end.

use crate::json::{InputFault, Json, Object};
use crate::transcript::document_error::Complaint;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::common::Read;
use crate::transcript::stream::{Arriving, Messages};
use crate::types::Form;

/// Whether only this dialect has such an event.
pub fn is_event(event: &Object) -> bool {
    let kind = event.text("type");
    kind.is_some_and(|kind| kind.starts_with("content_block_") || kind.starts_with("message_"))
}

/// Reads one event. Those of unknown types are passed over, as the API asks of its readers.
pub fn event<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    match event.text_once("type")?.as_deref() {
        Some("message_start") => return start(event, messages),
        Some("content_block_start" | "content_block_delta" | "message_delta")
            if !messages.is_open() =>
        {
            return Err(Complaint::new(
                event.json(),
                "an event outside of a message",
            ));
        }
        Some("content_block_start") => return block(event, messages),
        Some("content_block_delta") => return piece(event, messages),
        Some("content_block_stop") => {
            if let Some(call) = messages.find(Some(index(event)?)) {
                messages.seal(call);
            }
        }
        Some("message_delta") => {
            let delta = event.once("delta")?.and_then(Json::object);
            let reason = delta.as_ref().map(|delta| delta.text_once("stop_reason"));
            if let Some(reason) = reason.transpose()?.flatten() {
                messages.cut_off(anthropic::cuts_off(&reason));
            }
        }
        Some("message_stop") => messages.close(),
        _ => {}
    }
    Ok(())
}

fn start<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    if messages.is_open() {
        let what = "another message begins before the end of this one";
        return Err(Complaint::new(event.json(), what));
    }
    messages.open(Form::Message, String::new());
    Ok(())
}

fn block<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let index = index(event)?;
    let block = event.once("content_block")?.and_then(Json::object);
    let block =
        block.ok_or_else(|| Complaint::new(event.json(), "the event has no `content_block`"))?;
    if block.text_once("type")?.as_deref() != Some("tool_use") {
        messages.other();
        return Ok(());
    }
    let text = |key| block.text(key).map(Into::into);
    let input = block.get("input").filter(|input| !input.is_null());
    let mut call = Arriving::new(Some(index), text("id"), text("name"));
    call.given = input.map(|input| input.get().to_owned());
    call.fault = block.twice().map(InputFault::twice);
    messages.begin(call);
    Ok(())
}

fn piece<'a>(event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    let index = index(event)?;
    let delta = event.once("delta")?.and_then(Json::object);
    let json = delta.as_ref().map(|delta| delta.once("partial_json"));
    let Some(json) = json.transpose()?.flatten() else {
        return Ok(());
    };
    let Some(call) = messages.find(Some(index)) else {
        return Ok(());
    };
    let piece = json
        .text()
        .ok_or_else(|| Complaint::new(json, "`partial_json` must be a text"))?;
    crate::transcript::formats::common::piece(event, call, &piece, messages)
}

/// Which block an event is about.
fn index<'a>(event: &Object<'a>) -> Result<u64, Complaint<'a>> {
    let index = event
        .once("index")?
        .and_then(|index| index.get().parse().ok());
    index.ok_or_else(|| Complaint::new(event.json(), "the event has no `index`"))
}
