//! Streams of Anthropic's Messages API. Events refer to a block by its `index`; the stop reason of a message arrives in
//! a `message_delta` shortly before its end.

use crate::json::{InvalidInput, JsonKind, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult};
use crate::transcript::formats::StreamFormat;
use crate::transcript::formats::anthropic::{Anthropic, ending, is_block};
use crate::transcript::formats::conversation::{may_be_call, read_index};
use crate::transcript::index::CallId;
use crate::transcript::raw_call::find_input;
use crate::transcript::stream::{Block, BlockKind, CallInput, Messages, UNCLEAR_INPUT};
use crate::types::{AnswerForm, CallKind, Dialect};

/// Members of a delta that don't belong to its block: its type, and what is put together elsewhere.
const DELTA_KEYS: [&str; 3] = ["type", "partial_json", "citation"];

impl StreamFormat for Anthropic {
    fn is_event(&self, event: &ParsedObject) -> bool {
        let kind = event.get_text("type");
        kind.is_some_and(|kind| kind.starts_with("content_block_") || kind.starts_with("message_"))
    }

    /// Unknown types are ignored, as the API's documentation asks of clients.
    fn read_event<'a>(
        &self,
        event: &ParsedObject<'a>,
        messages: &mut Messages,
    ) -> DocumentResult<'a> {
        match event.get_unique_text("type")?.as_deref() {
            Some("message_start") => start_message(event, messages),
            Some("content_block_start") if messages.can_be_late() && starts_call(event) => {
                messages.open_late(Dialect::Anthropic, AnswerForm::Message, None);
                start_block(event, messages)
            }
            Some("content_block_start" | "content_block_delta" | "message_delta")
                if !messages.is_open() =>
            {
                Err(DocumentError::new(
                    event.json(),
                    "the event is outside of a message",
                ))
            }
            Some("content_block_start") => start_block(event, messages),
            Some("content_block_delta") => add_delta(event, messages),
            Some("content_block_stop") => {
                // The end of a block that never began means nothing.
                if let Some(block) = find_block(event, messages)? {
                    messages.end_block(block);
                }
                Ok(())
            }
            Some("message_delta") => {
                let delta = event.get_unique("delta")?.and_then(JsonText::object);
                let reason = delta
                    .as_ref()
                    .map(|delta| delta.get_unique_text("stop_reason"));
                if let Some(reason) = reason.transpose()?.flatten() {
                    messages.stop(ending(&reason));
                }
                Ok(())
            }
            Some("message_stop") => {
                messages.close();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn starts_call(event: &ParsedObject) -> bool {
    let block = event.get_object("content_block");
    block.is_some_and(|block| block.get_text("type").as_deref() == Some("tool_use"))
}

fn start_message<'a>(event: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    if messages.is_open() {
        if !messages.has_stopped() {
            let text = "another message begins before the end of this one";
            return Err(DocumentError::new(event.json(), text));
        }
        messages.close();
    }
    let header = event.get_object("message");
    messages.open(Dialect::Anthropic, AnswerForm::Message, header.as_ref());
    Ok(())
}

fn start_block<'a>(event: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    let index = read_index(event, "index")?;
    let start = event
        .get_unique("content_block")?
        .and_then(JsonText::object);
    let start = start
        .ok_or_else(|| DocumentError::new(event.json(), "the event has no `content_block`"))?;
    let kind = start.get_unique_text("type")?.unwrap_or_default();
    let (id, name) = (CallId::read(&start, "id"), start.get_text("name"));
    let block = match &*kind {
        "tool_use" => {
            let kind = BlockKind::Call(CallKind::Function);
            let input = find_input(&[&start], "input");
            let duplicate = start.duplicate_key().map(InvalidInput::duplicate_key);
            let fault = duplicate.or(input.clone().err());
            let input = CallInput::new(false, input.ok().flatten());
            if let Some(begun) = find_begun(index, (&id, name.as_deref()), messages) {
                messages.begin_again(begun, input);
                return Ok(());
            }
            Block {
                input,
                fault,
                ..Block::new(kind, index).called(id, name)
            }
        }
        "text" | "thinking" | "redacted_thinking" => Block::new(BlockKind::Other, index),
        kind if kind.ends_with("tool_result") => Block::new(BlockKind::Other, index),
        kind => {
            if !is_block(kind) {
                messages.add_unknown_kind(kind, may_be_call(kind, &start));
            }
            Block::new(BlockKind::Input, index)
        }
    };
    messages.begin(block, &start);
    Ok(())
}

/// Returns the number of the open block at this index, if it is the same call, whose beginning was sent twice.
fn find_begun(
    index: Option<u64>,
    (id, name): (&CallId, Option<&str>),
    messages: &Messages,
) -> Option<usize> {
    let number = messages.find_index(index?)?;
    let known = messages.block(number)?;
    let has_same_id = id.text().is_some() && known.id.text() == id.text();
    let is_same = has_same_id && known.name.as_deref() == name && !known.is_complete;
    is_same.then_some(number)
}

fn add_delta<'a>(event: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    let block = find_block(event, messages)?;
    let Some(delta) = event.get_unique("delta")?.and_then(JsonText::object) else {
        return Ok(());
    };
    let record = block.and_then(|block| messages.block_mut(block)?.record.as_mut());
    if let Some(record) = record {
        record.add_members(&delta, &DELTA_KEYS);
        if let Some(citation) = delta.get("citation") {
            record.add_element("citations", citation);
        }
    }
    let given = delta.get_unique("partial_json")?;
    let is_piece = delta.get_text("type").as_deref() == Some("input_json_delta");
    match find_input(&[&delta], "partial_json") {
        Ok(Some(piece)) if piece.kind() == JsonKind::String => messages.add_piece(block, piece),
        Ok(Some(piece)) if !piece.is_null() => {
            let message = "`partial_json` must be a string";
            return Err(DocumentError::new(piece, message));
        }
        Ok(None) if !is_piece => {}
        Ok(Some(_)) if given.is_some() => {}
        Ok(_) | Err(_) => match block {
            Some(block) => messages.break_at(block, UNCLEAR_INPUT),
            None => messages.break_uncertain(UNCLEAR_INPUT),
        },
    }
    Ok(())
}

/// Returns the number of the block that an event is about. Without an `index`, that can only be the one that is open.
fn find_block<'a>(
    event: &ParsedObject<'a>,
    messages: &Messages,
) -> Result<Option<usize>, DocumentError<'a>> {
    Ok(match read_index(event, "index")? {
        Some(index) => messages.find_index(index),
        None => messages.only_open_block(),
    })
}
