//! Streams of Anthropic's Messages API. Events refer to a block by its `index`; the stop reason of a message arrives in
//! a `message_delta` shortly before its end.

use crate::json::{InvalidInput, JsonText, ParsedObject};
use crate::transcript::document_error::DocumentError;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::common::DocumentResult;
use crate::transcript::stream::{CallBuilder, MessageTracker};
use crate::types::AnswerForm;

/// Returns whether only this dialect has such an event.
pub fn is_event(event: &ParsedObject) -> bool {
    let kind = event.get_text("type");
    kind.is_some_and(|kind| kind.starts_with("content_block_") || kind.starts_with("message_"))
}

/// Reads one event. Unknown types are ignored, as the API's documentation asks of clients.
pub fn read_event<'a>(
    event: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    match event.get_unique_text("type")?.as_deref() {
        Some("message_start") => return start_message(event, messages),
        Some("content_block_start" | "content_block_delta" | "message_delta")
            if !messages.is_open() =>
        {
            return Err(DocumentError::new(
                event.json(),
                "the event is outside of a message",
            ));
        }
        Some("content_block_start") => return start_block(event, messages),
        Some("content_block_delta") => return add_piece(event, messages),
        Some("content_block_stop") => {
            if let Some(call) = messages.find_call(Some(block_index(event)?)) {
                messages.complete_call(call);
            }
        }
        Some("message_delta") => {
            let delta = event.get_unique("delta")?.and_then(JsonText::object);
            let reason = delta
                .as_ref()
                .map(|delta| delta.get_unique_text("stop_reason"));
            if let Some(reason) = reason.transpose()?.flatten() {
                messages.set_cut_off(anthropic::is_cut_off_reason(&reason));
                if reason == anthropic::REFUSAL_REASON {
                    messages.mark_refused();
                }
            }
        }
        Some("message_stop") => messages.close_message(),
        _ => {}
    }
    Ok(())
}

fn start_message<'a>(
    event: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    if messages.is_open() {
        let text = "another message begins before the end of this one";
        return Err(DocumentError::new(event.json(), text));
    }
    messages.open_message(AnswerForm::Message, String::new());
    Ok(())
}

fn start_block<'a>(event: &ParsedObject<'a>, messages: &mut MessageTracker) -> DocumentResult<'a> {
    let index = block_index(event)?;
    let block = event
        .get_unique("content_block")?
        .and_then(JsonText::object);
    let block = block
        .ok_or_else(|| DocumentError::new(event.json(), "the event has no `content_block`"))?;
    if block.get_unique_text("type")?.as_deref() != Some("tool_use") {
        messages.begin_other_block();
        return Ok(());
    }
    let text = |key| block.get_text(key).map(Into::into);
    let input = block.get("input").filter(|input| !input.is_null());
    let mut call = CallBuilder::new(Some(index), text("id"), text("name"));
    call.initial_input = input.map(|input| input.get().to_owned());
    call.input_error = block.duplicate_key().map(InvalidInput::duplicate_key);
    messages.begin_call(call);
    Ok(())
}

fn add_piece<'a>(event: &ParsedObject<'a>, messages: &mut MessageTracker) -> DocumentResult<'a> {
    let index = block_index(event)?;
    let delta = event.get_unique("delta")?.and_then(JsonText::object);
    let json = delta.as_ref().map(|delta| delta.get_unique("partial_json"));
    let Some(json) = json.transpose()?.flatten() else {
        return Ok(());
    };
    let Some(call) = messages.find_call(Some(index)) else {
        return Ok(());
    };
    let piece = json
        .to_text()
        .ok_or_else(|| DocumentError::new(json, "`partial_json` must be a string"))?;
    crate::transcript::formats::common::add_piece(event, call, &piece, messages)
}

/// Returns the index of the block that an event is about.
fn block_index<'a>(event: &ParsedObject<'a>) -> Result<u64, DocumentError<'a>> {
    let index = event
        .get_unique("index")?
        .and_then(|index| index.get().parse().ok());
    index.ok_or_else(|| DocumentError::new(event.json(), "the event has no `index`"))
}
