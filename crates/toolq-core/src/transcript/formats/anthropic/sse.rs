//! Streams of Anthropic's Messages API. Events refer to a block by its `index`; the stop reason of a message arrives in
//! a `message_delta` shortly before its end.

use crate::json::{InvalidInput, JsonText, ParsedObject};
use crate::transcript::document_error::{DocumentError, DocumentResult};
use crate::transcript::formats::anthropic;
use crate::transcript::formats::call_input::add_input_piece;
use crate::transcript::stream::{Block, MessageTracker};
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
            if let Some(block) = find_block(event, messages)? {
                messages.complete_block(block);
            }
        }
        Some("message_delta") => {
            let delta = event.get_unique("delta")?.and_then(JsonText::object);
            let reason = delta.as_ref().map(|delta| delta.get_unique("stop_reason"));
            let reason = reason.transpose()?.flatten();
            if let Some(text) = reason.and_then(JsonText::to_text) {
                messages.set_cut_off(anthropic::is_cut_off_reason(&text));
                if text == anthropic::REFUSAL_REASON {
                    messages.mark_refused();
                }
            }
        }
        Some("message_stop") => messages.end_message(),
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
    if let Some(message) = event.get_object("message") {
        messages.set_origin(&message);
    }
    Ok(())
}

fn start_block<'a>(event: &ParsedObject<'a>, messages: &mut MessageTracker) -> DocumentResult<'a> {
    let index = block_index(event)?;
    let start = event
        .get_unique("content_block")?
        .and_then(JsonText::object);
    let start = start
        .ok_or_else(|| DocumentError::new(event.json(), "the event has no `content_block`"))?;
    let block = if start.get_unique_text("type")?.as_deref() == Some("tool_use") {
        let text = |key| start.get_text(key).map(Into::into);
        let input = start.get("input").filter(|input| !input.is_null());
        let mut call = Block::call(index, text("id"), text("name"));
        call.initial_input = input.map(|input| input.get().to_owned());
        call.input_error = start.duplicate_key().map(InvalidInput::duplicate_key);
        call
    } else {
        Block::other(index)
    };
    messages.begin_block(block);
    Ok(())
}

fn add_piece<'a>(event: &ParsedObject<'a>, messages: &mut MessageTracker) -> DocumentResult<'a> {
    let block = find_block(event, messages)?;
    let delta = event.get_unique("delta")?.and_then(JsonText::object);
    let (Some(number), Some(delta)) = (block, delta) else {
        return Ok(());
    };
    let Some(json) = delta.get_unique("partial_json")? else {
        return Ok(());
    };
    let piece = json.to_text().ok_or_else(|| {
        let message = "`partial_json` must be a string without lone surrogates";
        DocumentError::new(json, message)
    })?;
    add_input_piece(event, number, &piece, messages)
}

/// Returns the number of the block that an event is about. Without an `index`, that can only be the one that is open.
fn find_block<'a>(
    event: &ParsedObject<'a>,
    messages: &MessageTracker,
) -> Result<Option<usize>, DocumentError<'a>> {
    if let Some(index) = block_index(event)? {
        return Ok(messages.find_block(index));
    }
    let message = "the event has no `index`, and more than one block is open, or none";
    let block = messages.only_open_block();
    block
        .map(Some)
        .ok_or_else(|| DocumentError::new(event.json(), message))
}

/// Returns the index of the block that an event is about. Some servers leave it out.
fn block_index<'a>(event: &ParsedObject<'a>) -> Result<Option<u64>, DocumentError<'a>> {
    let Some(index) = event.get_unique("index")?.filter(|index| !index.is_null()) else {
        return Ok(None);
    };
    let message = "`index` must be a number";
    let number = index.get().parse();
    number
        .map(Some)
        .map_err(|_| DocumentError::new(index, message))
}
