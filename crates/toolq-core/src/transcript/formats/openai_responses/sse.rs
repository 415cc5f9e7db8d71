//! Streams of the `OpenAI` responses API. Events refer to an item by its id, or else by its `output_index`. The last event of
//! an item repeats it completely, and the last event of a response all of them; some servers send only some of these.

use crate::json::{InvalidInput, JsonKind, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult};
use crate::transcript::formats::StreamFormat;
use crate::transcript::formats::conversation::read_index;
use crate::transcript::formats::openai_responses::{
    CUSTOM_CALL, OpenAiResponses, OtherItem, classify_item, ending, is_call,
};
use crate::transcript::index::CallId;
use crate::transcript::raw_call::{self, find_input};
use crate::transcript::stream::{Block, BlockKind, CallInput, Messages, UNCLEAR_INPUT, call_kind};
use crate::types::{AnswerForm, Dialect, ResponseEnding};

impl StreamFormat for OpenAiResponses {
    fn is_event(&self, event: &ParsedObject) -> bool {
        let kind = event.get_text("type");
        kind.is_some_and(|kind| kind.starts_with("response."))
    }

    /// Events that aren't about calls or the start or end of a response are ignored.
    fn read_event<'a>(
        &self,
        event: &ParsedObject<'a>,
        messages: &mut Messages,
    ) -> DocumentResult<'a> {
        let kind = event.get_unique_text("type")?;
        let kind = kind
            .as_deref()
            .and_then(|kind| kind.strip_prefix("response."));
        if let Some(kind) = kind
            && !messages.is_open()
            && !open_unannounced(kind, event, messages)?
        {
            return Ok(());
        }
        match kind {
            Some("created" | "queued" | "in_progress") => start_response(event, messages),
            Some("output_item.added") => begin_item(event, messages),
            Some("output_item.done") => end_item(event, messages),
            Some("function_call_arguments.delta" | "custom_tool_call_input.delta") => {
                add_piece(event, messages)
            }
            Some("function_call_arguments.done") => set_input(event, "arguments", messages),
            Some("custom_tool_call_input.done") => set_input(event, "input", messages),
            Some("failed" | "cancelled") => Err(failure_error(event)),
            Some(status @ ("completed" | "incomplete")) => end_response(status, event, messages),
            _ => Ok(()),
        }
    }
}

/// Opens a response whose beginning didn't arrive, and returns whether the event means something where none was open.
///
/// # Errors
/// The event is about an item, and comes after the end of its response.
fn open_unannounced<'a>(
    kind: &str,
    event: &ParsedObject<'a>,
    messages: &mut Messages,
) -> Result<bool, DocumentError<'a>> {
    let has_prefix = |prefixes: &[&str]| prefixes.iter().any(|prefix| kind.starts_with(prefix));
    if has_prefix(&["created", "queued", "in_progress"]) {
        return Ok(true);
    }
    let is_first = messages.count() == 0;
    if has_prefix(&["failed", "cancelled"]) {
        return Ok(is_first);
    }
    let is_about_item = has_prefix(&["output_item", "function_call", "custom_tool_call"]);
    let is_item_call = || {
        let item = event.get_object("item");
        let kind = item.and_then(|item| item.get_text("type"));
        kind.is_some_and(|kind| is_call(&kind))
    };
    if messages.can_be_late() && has_prefix(&["output_item"]) && is_item_call() {
        let form = AnswerForm::OpenAiResponses;
        messages.open_late(Dialect::OpenAiResponses, form, None);
        return Ok(true);
    }
    if is_about_item && !is_first {
        let text = "the event is outside of a response";
        return Err(DocumentError::new(event.json(), text));
    }
    let opens = is_first && (is_about_item || has_prefix(&["completed", "incomplete"]));
    if opens {
        let header = event.get_object("response");
        let (dialect, form) = (Dialect::OpenAiResponses, AnswerForm::OpenAiResponses);
        messages.open(dialect, form, header.as_ref());
    }
    Ok(opens)
}

fn start_response<'a>(event: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    let response = event.get_unique("response")?.and_then(JsonText::object);
    let id = response
        .as_ref()
        .and_then(|response| response.get_text("id"));
    match messages.open_id() {
        Some(open) if open.is_empty() || open == id.as_deref().unwrap_or_default() => Ok(()),
        Some(_) => {
            let text = "another response begins before the end of this one";
            Err(DocumentError::new(event.json(), text))
        }
        None => {
            let (dialect, form) = (Dialect::OpenAiResponses, AnswerForm::OpenAiResponses);
            messages.open(dialect, form, response.as_ref());
            Ok(())
        }
    }
}

/// Ends a response. Its last event may have items that no other event had.
fn end_response<'a>(
    status: &str,
    event: &ParsedObject<'a>,
    messages: &mut Messages,
) -> DocumentResult<'a> {
    if let Some(response) = event.get_unique("response")?.and_then(JsonText::object) {
        let output = response.get_unique("output")?;
        let items = output.and_then(JsonText::objects).into_iter().flatten();
        for (number, item) in items.flatten().enumerate() {
            let block = read_whole_item(&item, None, messages)?;
            if let Some(record) = messages.record() {
                if number == 0 {
                    record.clear_parts();
                }
                record.add_part(item.json(), Some(block));
            }
        }
        match ending(status, &response) {
            // An item may have said that it is incomplete.
            ResponseEnding::Complete => {}
            ending => messages.refine_ending(ending),
        }
    }
    messages.close();
    Ok(())
}

fn begin_item<'a>(event: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    let (item, index) = (event_item(event)?, read_index(event, "output_index")?);
    let known = find_item(Some(&item), index, messages);
    let id = CallId::read(&item, "call_id");
    let is_begun = |number: &usize| {
        messages.block(*number).is_some_and(|block| {
            let is_same = id.text().is_some() && block.id.text() == id.text();
            block.is_call() && !block.is_complete && is_same
        })
    };
    let begun = known.filter(is_begun);
    let block = new_block(&item, index, messages)?;
    match begun {
        Some(begun) => messages.begin_again(begun, block.input),
        None => drop(messages.begin(block, &item)),
    }
    Ok(())
}

/// Creates the block of an item.
fn new_block<'a>(
    item: &ParsedObject<'a>,
    index: Option<u64>,
    messages: &mut Messages,
) -> Result<Block, DocumentError<'a>> {
    let kind = item.get_unique_text("type")?.unwrap_or_default();
    let is_custom = kind == CUSTOM_CALL;
    let mut block = if is_call(&kind) {
        let initial = find_input(&[item], input_key(&kind));
        Block {
            fault: initial.clone().err(),
            input: CallInput::new(is_custom, initial.ok().flatten()),
            ..Block::new(call_kind(is_custom), index)
                .called(CallId::read(item, "call_id"), item.get_text("name"))
        }
    } else {
        match classify_item(&kind, item) {
            OtherItem::Api => {}
            OtherItem::Answer(answered) => drop(messages.unknown_kinds.remove(answered)),
            OtherItem::Unknown { may_be_call } => messages.add_unknown_kind(&kind, may_be_call),
        }
        let has_input = kind.ends_with("_call");
        Block::new(
            if has_input {
                BlockKind::Input
            } else {
                BlockKind::Other
            },
            index,
        )
    };
    block.key = CallId::read(item, "id").text().map(str::to_owned);
    Ok(block)
}

/// Reads the last event of an item, which has all of it.
fn end_item<'a>(event: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    let (item, index) = (event_item(event)?, read_index(event, "output_index")?);
    let block = read_whole_item(&item, index, messages)?;
    if let Some(record) = messages.record() {
        record.add_part(item.json(), Some(block));
    }
    Ok(())
}

/// Reads an item as a whole, and returns the number of its block. It overrides the pieces that arrived before.
fn read_whole_item<'a>(
    item: &ParsedObject<'a>,
    index: Option<u64>,
    messages: &mut Messages,
) -> Result<usize, DocumentError<'a>> {
    let kind = item.get_unique_text("type")?.unwrap_or_default();
    let known = find_item(Some(item), index, messages);
    let number = if let Some(known) = known.filter(|known| is_same_call(*known, item, messages)) {
        known
    } else {
        let block = new_block(item, index, messages)?;
        messages.begin(block, item)
    };
    if is_call(&kind) {
        item.get_unique(input_key(&kind))?;
        let input = find_input(&[item], input_key(&kind));
        let given = input.as_ref().ok().copied().flatten();
        let given = given.filter(|input| !input.is_null());
        messages.set_input(number, given.unwrap_or(JsonText::new("\"\"")));
        messages.set_name(number, item.get_text("name"));
        messages.set_call_id(number, CallId::read(item, "call_id"));
        if let Some(block) = messages
            .block_mut(number)
            .filter(|block| !block.is_complete)
        {
            let duplicate = item.duplicate_key().map(InvalidInput::duplicate_key);
            block.fault = duplicate.or(input.err());
        }
        let is_cut_off = item.get_unique_text("status")?.as_deref() == Some("incomplete");
        messages.refine_ending(if is_cut_off {
            ResponseEnding::CutOff
        } else {
            ResponseEnding::Complete
        });
    }
    messages.end_block(number);
    Ok(number)
}

/// Returns whether a block is the item. With an index alone, it isn't if both are calls with ids of their own.
fn is_same_call(number: usize, item: &ParsedObject, messages: &Messages) -> bool {
    let Some(block) = messages.block(number) else {
        return false;
    };
    let kind = item.get_text("type").unwrap_or_default();
    let id = CallId::read(item, "call_id");
    let item_id = CallId::read(item, "id");
    let has_its_key = block.key.is_some() && block.key.as_deref() == item_id.text();
    let is_other = || {
        let ids = block.id.text().zip(id.text());
        ids.is_some_and(|(known, id)| known != id)
    };
    is_call(&kind) == block.is_call() && (has_its_key || !is_other())
}

fn add_piece<'a>(event: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    let number = find_event_item(event, messages)?;
    let given = event.get_unique("delta")?;
    match find_input(&[event], "delta") {
        Ok(Some(delta)) if delta.kind() == JsonKind::String => messages.add_piece(number, delta),
        Ok(Some(delta)) if !delta.is_null() => {
            return Err(DocumentError::new(delta, "`delta` must be a string"));
        }
        Ok(_) if given.is_some() => {}
        Ok(_) | Err(_) => match number {
            Some(number) => messages.break_at(number, UNCLEAR_INPUT),
            None => messages.break_uncertain(UNCLEAR_INPUT),
        },
    }
    Ok(())
}

/// Sets the input that the last event of an input has.
fn set_input<'a>(
    event: &ParsedObject<'a>,
    key: &str,
    messages: &mut Messages,
) -> DocumentResult<'a> {
    event.get_unique(key)?;
    let input = match find_input(&[event], key) {
        Ok(Some(input)) if !input.is_null() => Some(input),
        Ok(_) => return Ok(()),
        Err(_) => None,
    };
    match (find_event_item(event, messages)?, input) {
        (Some(number), Some(input)) => {
            messages.set_input(number, input);
            messages.set_name(number, event.get_text("name"));
        }
        (Some(number), None) => messages.break_at(number, UNCLEAR_INPUT),
        (None, _) => messages.break_uncertain("an input belongs to no item"),
    }
    Ok(())
}

/// Returns the key of the input of a call of this type.
fn input_key(kind: &str) -> &'static str {
    if kind == CUSTOM_CALL {
        "input"
    } else {
        "arguments"
    }
}

/// Returns the number of the block of the item that an event is about: by the item's id, or else by its index. `None` also if they
/// lead to different items, which breaks the message.
fn find_event_item<'a>(
    event: &ParsedObject<'a>,
    messages: &mut Messages,
) -> Result<Option<usize>, DocumentError<'a>> {
    let index = read_index(event, "output_index")?;
    let by_id = CallId::read(event, "item_id")
        .text()
        .and_then(|id| messages.find_key(id));
    let by_index = index.and_then(|index| messages.find_index(index));
    Ok(match (by_id, by_index) {
        (Some(by_id), Some(at)) => {
            // Some servers give all items one index.
            let block = messages.block(by_id);
            let has_index = block.is_some_and(|block| block.index == index);
            let is_one = by_id == at || has_index;
            if !is_one {
                messages
                    .break_uncertain("an `item_id` and its `output_index` name different items");
            }
            is_one.then_some(by_id)
        }
        (None, None) if index.is_none() => messages.only_open_block(),
        (by_id, by_index) => by_id.or(by_index),
    })
}

/// Returns the number of the block of an item: by the id of its call, or by its own, or else by its index.
fn find_item(
    item: Option<&ParsedObject>,
    index: Option<u64>,
    messages: &Messages,
) -> Option<usize> {
    let id = |key| item.map_or(CallId::Missing, |item| CallId::read(item, key));
    let by_id = || id("id").text().and_then(|id| messages.find_key(id));
    let by_call = id("call_id")
        .text()
        .and_then(|id| messages.find_call_id(id));
    by_call
        .or_else(by_id)
        .or_else(|| messages.find_index(index?))
}

fn event_item<'a>(event: &ParsedObject<'a>) -> Result<ParsedObject<'a>, DocumentError<'a>> {
    let item = event.get_unique("item")?.and_then(JsonText::object);
    item.ok_or_else(|| DocumentError::new(event.json(), "the event has no `item`"))
}

fn failure_error<'a>(event: &ParsedObject<'a>) -> DocumentError<'a> {
    match event.get("response").and_then(JsonText::object) {
        Some(response) => raw_call::stream_error(&response),
        None => DocumentError::new(event.json(), "the response failed"),
    }
}
