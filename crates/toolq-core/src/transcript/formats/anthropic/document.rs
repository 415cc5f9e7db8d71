//! Anthropic's Messages API: a response or message, a request, an array of messages or of content blocks, one block.

use crate::json::{Json, Object, Objects};
use crate::transcript::document::Document;
use crate::transcript::document_error::Complaint;
use crate::transcript::formats::common::Read;
use crate::transcript::index_builder::Turns;
use crate::transcript::raw_call::Asked;
use crate::types::{Dialect, Form, Recorded};

/// Reasons to stop in the middle: what the model meant to say is longer.
const CUT_OFF: [&str; 2] = ["max_tokens", "model_context_window_exceeded"];

/// The content blocks of messages and answers, besides the results of server tools.
const BLOCKS: [&str; 10] = [
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "image",
    "document",
    "search_result",
    "container_upload",
];

/// Whether a value of this `type` is a content block.
pub fn is_block(kind: &str) -> bool {
    BLOCKS.contains(&kind) || kind.ends_with("tool_result")
}

pub fn read<'a>(document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    if let Some(items) = document.json.objects() {
        return list(items, turns);
    }
    let Some(object) = &document.object else {
        return Err(Complaint::no_object("a message", document.json));
    };
    match object.once("messages")? {
        Some(history) => {
            turns.request();
            let messages = history
                .objects()
                .ok_or_else(|| Complaint::no_list("messages", history))?;
            all(messages, turns)
        }
        None if object.has("role") => message(object, turns),
        None => block(object, turns),
    }
}

/// An array of messages, or of blocks.
fn list<'a>(mut items: Objects<'a>, turns: &mut Turns) -> Read<'a> {
    let first = items.next();
    let is_message = |item: &Result<Object, _>| item.as_ref().is_ok_and(|item| item.has("role"));
    if first.as_ref().is_some_and(is_message) {
        return all(first.into_iter().chain(items), turns);
    }
    let turn = turns.open(Dialect::Anthropic, Form::Blocks);
    blocks(first.into_iter().chain(items), turn, turns).map(drop)
}

/// The messages of a conversation.
fn all<'a>(
    messages: impl IntoIterator<Item = Result<Object<'a>, Json<'a>>>,
    turns: &mut Turns,
) -> Read<'a> {
    messages.into_iter().try_for_each(|object| {
        let object = object.map_err(|other| Complaint::no_object("a message", other))?;
        message(&object, turns)
    })
}

/// One block by itself.
fn block<'a>(block: &Object<'a>, turns: &mut Turns) -> Read<'a> {
    match block.text_once("type")?.as_deref() {
        Some("tool_result") => {
            result(block, turns);
            Ok(())
        }
        Some(kind) if is_block(kind) => {
            let turn = turns.open(Dialect::Anthropic, Form::Block);
            add(block, turn, turns).map(drop)
        }
        _ => Err(Complaint::new(
            block.json(),
            "this is no message, request or content block",
        )),
    }
}

fn message<'a>(message: &Object<'a>, turns: &mut Turns) -> Read<'a> {
    if message.text_once("role")?.as_deref() != Some("assistant") {
        return results(message, turns);
    }
    let turn = turns.open(Dialect::Anthropic, Form::Message);
    answer(message, turn, turns)
}

/// Adds the calls of an assistant message, or of a part of one, to its turn.
pub fn answer<'a>(message: &Object<'a>, turn: usize, turns: &mut Turns) -> Read<'a> {
    let content = content(message)?.into_iter().flatten();
    let ends_in_call = blocks(content, turn, turns)?;
    let reason = message.text_once("stop_reason")?;
    let stopped = reason.is_some_and(|reason| cuts_off(&reason));
    turns.cut_off(turn, stopped && ends_in_call);
    Ok(())
}

/// Whether a message that stopped for this reason ends in the middle.
pub fn cuts_off(reason: &str) -> bool {
    CUT_OFF.contains(&reason)
}

/// Tells of the results in a message of the user.
pub fn results<'a>(message: &Object<'a>, turns: &mut Turns) -> Read<'a> {
    for block in content(message)?.into_iter().flatten().flatten() {
        if block.text_once("type")?.as_deref() == Some("tool_result") {
            result(&block, turns);
        }
    }
    Ok(())
}

fn result(block: &Object, turns: &mut Turns) {
    if let Some(id) = block.text("tool_use_id") {
        turns.result(&id, block.json());
    }
}

/// The blocks of a message; none where a text stands in their place, which asks nothing.
fn content<'a>(message: &Object<'a>) -> Result<Option<Objects<'a>>, Complaint<'a>> {
    let Some(content) = message.once("content")? else {
        return Ok(None);
    };
    match (content.objects(), content.kind()) {
        (Some(blocks), _) => Ok(Some(blocks)),
        (None, "a string" | "null") => Ok(None),
        (None, other) => {
            let message = format!("`content` must be a text or an array of blocks, not {other}");
            Err(Complaint::new(content, message))
        }
    }
}

/// Adds the calls among `blocks` to a turn; whether the last block is one.
fn blocks<'a>(
    blocks: impl IntoIterator<Item = Result<Object<'a>, Json<'a>>>,
    turn: usize,
    turns: &mut Turns,
) -> Result<bool, Complaint<'a>> {
    blocks.into_iter().try_fold(false, |_, block| {
        let block = block.map_err(|other| Complaint::no_object("a content block", other))?;
        add(&block, turn, turns)
    })
}

/// Adds a block to a turn if it is a call; whether it is one.
fn add<'a>(block: &Object<'a>, turn: usize, turns: &mut Turns) -> Result<bool, Complaint<'a>> {
    let kind = block.text_once("type")?;
    let kind = kind.ok_or_else(|| Complaint::new(block.json(), "a content block has no `type`"))?;
    if kind == "tool_use" {
        turns.call(turn, block.json(), block.text("id").as_deref())?;
    } else if kind == "tool_result" {
        result(block, turns);
    }
    Ok(kind == "tool_use")
}

/// Reads a `tool_use` block.
pub fn asked(block: &Object) -> Asked {
    let input = crate::transcript::formats::common::input(block.get("input"));
    Asked::new(block.text("id"), block.text("name"), input).unless_twice(block)
}

/// Reads a `tool_result` block.
pub fn answered(block: &Object) -> Recorded {
    let is_error = block
        .get("is_error")
        .is_some_and(|json| json.get() == "true");
    Recorded {
        is_error: Some(is_error),
        ..crate::transcript::formats::common::plain(block.get("content"))
    }
}
