//! Streams of the `OpenAI` responses API. Events refer to an item by its `output_index`, and the last event of an item
//! repeats it completely.

use crate::json::{InvalidInput, JsonKind, JsonText, ParsedObject};
use crate::transcript::document_error::{DocumentError, DocumentResult};
use crate::transcript::formats::call_input::add_input_piece;
use crate::transcript::formats::openai_responses;
use crate::transcript::stream::{Block, MessageTracker};
use crate::types::AnswerForm;

/// Returns whether only this dialect has such an event.
pub fn is_event(event: &ParsedObject) -> bool {
    event
        .get_text("type")
        .is_some_and(|kind| kind.starts_with("response."))
}

/// Reads one event. Events that aren't about calls or the start or end of a response are ignored.
pub fn read_event<'a>(
    event: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    let kind = event.get_unique_text("type")?;
    let kind = kind
        .as_deref()
        .and_then(|kind| kind.strip_prefix("response."));
    match kind {
        Some("created" | "queued" | "in_progress") => start_response(event, messages),
        Some(_) if !messages.is_open() => Ok(()),
        Some("output_item.added") => add_item(event, messages),
        Some("output_item.done") => finish_item(event, messages),
        Some("function_call_arguments.delta") => add_piece(event, messages),
        Some("function_call_arguments.done") => match messages.find_call(item_index(event)?) {
            Some(call) => replace_arguments(event, call, messages),
            None => Ok(()),
        },
        Some("completed") => {
            messages.end_message();
            Ok(())
        }
        Some("incomplete") => {
            messages.set_cut_off(true);
            let response = event.get_unique("response")?.and_then(JsonText::object);
            if response.as_ref().is_some_and(openai_responses::is_filtered) {
                messages.mark_refused();
            }
            messages.end_message();
            Ok(())
        }
        Some("failed" | "cancelled") => Err(failure_error(event)),
        _ => Ok(()),
    }
}

fn start_response<'a>(
    event: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    let response = event.get_unique("response")?.and_then(JsonText::object);
    let id = response
        .as_ref()
        .map(|response| response.get_unique_text("id"));
    let id = id.transpose()?.flatten();
    let name = id.as_deref().unwrap_or_default();
    if !messages.is_open() {
        messages.open_message(AnswerForm::OpenAiResponses, name.to_owned());
        if let Some(response) = &response {
            messages.set_origin(response);
        }
    } else if messages.open_message_id() != name {
        let text = "another response begins before the end of this one";
        return Err(DocumentError::new(event.json(), text));
    }
    Ok(())
}

fn add_item<'a>(event: &ParsedObject<'a>, messages: &mut MessageTracker) -> DocumentResult<'a> {
    let index = item_index(event)?;
    let item = event_item(event)?;
    begin_item(&item, index, messages).map(drop)
}

/// Reads a complete item, which overrides the pieces that arrived before.
fn finish_item<'a>(event: &ParsedObject<'a>, messages: &mut MessageTracker) -> DocumentResult<'a> {
    let index = item_index(event)?;
    let item = event_item(event)?;
    if !is_call(&item)? {
        return Ok(());
    }
    let call = messages.find_call(index);
    let call = call.map_or_else(|| begin_item(&item, index, messages), Ok)?;
    replace_arguments(&item, call, messages)?;
    messages.set_cut_off(item.get_unique_text("status")?.as_deref() == Some("incomplete"));
    if let Some(call) = messages.call_mut(call) {
        call.input_error = item.duplicate_key().map(InvalidInput::duplicate_key);
    }
    messages.complete_block(call);
    Ok(())
}

fn event_item<'a>(event: &ParsedObject<'a>) -> Result<ParsedObject<'a>, DocumentError<'a>> {
    let item = event.get_unique("item")?.and_then(JsonText::object);
    item.ok_or_else(|| DocumentError::new(event.json(), "the event has no `item`"))
}

fn is_call<'a>(item: &ParsedObject<'a>) -> Result<bool, DocumentError<'a>> {
    Ok(item.get_unique_text("type")?.as_deref() == Some("function_call"))
}

/// Starts a block for an item and returns its number.
fn begin_item<'a>(
    item: &ParsedObject<'a>,
    index: u64,
    messages: &mut MessageTracker,
) -> Result<usize, DocumentError<'a>> {
    let text = |key| item.get_text(key).map(Into::into);
    let block = if is_call(item)? {
        Block::call(Some(index), text("call_id"), text("name"))
    } else {
        Block::other(Some(index))
    };
    Ok(messages.begin_block(block))
}

fn add_piece<'a>(event: &ParsedObject<'a>, messages: &mut MessageTracker) -> DocumentResult<'a> {
    let (Some(call), Some(delta)) = (
        messages.find_call(item_index(event)?),
        event.get_unique("delta")?,
    ) else {
        return Ok(());
    };
    let piece = delta
        .to_text()
        .ok_or_else(|| DocumentError::new(delta, "`delta` must be a string"))?;
    add_input_piece(event, call, &piece, messages)
}

/// Replaces the arguments of a call by the complete ones in `object`.
fn replace_arguments<'a>(
    object: &ParsedObject<'a>,
    call: usize,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    let Some(arguments) = object.get_unique("arguments")? else {
        return Ok(());
    };
    match arguments.kind() {
        JsonKind::String => {
            let text = arguments.to_text();
            let text = text
                .ok_or_else(|| DocumentError::new(arguments, "`arguments` has a lone surrogate"))?;
            messages.replace_input(call, &text);
        }
        _ => messages.replace_input(call, arguments.get()),
    }
    Ok(())
}

/// Returns the index of the item that an event is about.
fn item_index<'a>(event: &ParsedObject<'a>) -> Result<u64, DocumentError<'a>> {
    let index = event
        .get_unique("output_index")?
        .and_then(|index| index.get().parse().ok());
    index.ok_or_else(|| DocumentError::new(event.json(), "the event has no `output_index`"))
}

fn failure_error<'a>(event: &ParsedObject<'a>) -> DocumentError<'a> {
    match event.get("response").and_then(JsonText::object) {
        Some(response) => crate::transcript::unrecognized::stream_error(&response),
        None => DocumentError::new(event.json(), "the response failed"),
    }
}
