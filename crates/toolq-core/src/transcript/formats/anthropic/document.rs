//! Documents of Anthropic's Messages API: a response or message, a request, an array of messages or content blocks, or
//! a single block.

use crate::json::{Input, InvalidInput, JsonKind, JsonText, ObjectIter, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::{DocumentError, DocumentResult};
use crate::transcript::formats::call_input::parse_input;
use crate::transcript::formats::plain_result::plain_result;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::types::{AnswerForm, Dialect, RecordedResult};

/// Stop reasons of a message that was cut off by a limit.
const CUT_OFF_REASONS: [&str; 2] = ["max_tokens", "model_context_window_exceeded"];

/// The stop reason of a message that the model, or a filter of its API, refused.
pub const REFUSAL_REASON: &str = "refusal";

/// Types of content blocks, other than those that end in `tool_result`.
const BLOCK_TYPES: [&str; 10] = [
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

/// Returns whether a value with this `type` is a content block.
pub fn is_block(kind: &str) -> bool {
    BLOCK_TYPES.contains(&kind) || kind.ends_with("tool_result")
}

/// Returns whether an object is an assistant's message that lacks its `role`: it has a stop reason, or an array of
/// content blocks.
pub fn is_message_without_role(object: &ParsedObject) -> bool {
    let kind = object.get_text("type");
    if object.has_value("role") || kind.is_some_and(|kind| kind != "message") {
        return false;
    }
    let blocks = object.get("content").and_then(JsonText::objects);
    let is_content_block = |block: Result<ParsedObject, JsonText>| {
        block.is_ok_and(|block| block.get_text("type").is_some_and(|kind| is_block(&kind)))
    };
    object.has_value("stop_reason")
        || blocks.is_some_and(|mut blocks| blocks.next().is_none_or(is_content_block))
}

/// Reads a document into the index.
pub fn read_document<'a>(
    document: &InputDocument<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    if let Some(items) = document.json.objects() {
        return read_list(items, builder);
    }
    let Some(object) = &document.object else {
        return Err(DocumentError::not_an_object("a message", document.json));
    };
    match object.get_unique("messages")? {
        Some(history) => {
            builder.mark_request();
            let messages = history
                .objects()
                .ok_or_else(|| DocumentError::not_an_array("messages", history))?;
            read_messages(messages, builder)
        }
        None if object.has_value("role") => read_message(object, builder),
        None if is_message_without_role(object) => {
            let turn = builder.open_turn(Dialect::Anthropic, AnswerForm::Message);
            read_assistant_message(object, turn, builder)
        }
        None => read_block(object, builder),
    }
}

/// Reads an array of messages or of content blocks.
fn read_list<'a>(mut items: ObjectIter<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    let first = items.next();
    let is_message =
        |item: &Result<ParsedObject, _>| item.as_ref().is_ok_and(|item| item.has_value("role"));
    if first.as_ref().is_some_and(is_message) {
        return read_messages(first.into_iter().chain(items), builder);
    }
    let turn = builder.open_turn(Dialect::Anthropic, AnswerForm::Blocks);
    add_blocks(first.into_iter().chain(items), turn, builder).map(drop)
}

/// Reads the messages of a conversation.
fn read_messages<'a>(
    messages: impl IntoIterator<Item = Result<ParsedObject<'a>, JsonText<'a>>>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    messages.into_iter().try_for_each(|object| {
        let object = object.map_err(|other| DocumentError::not_an_object("a message", other))?;
        read_message(&object, builder)
    })
}

/// Reads a single block.
fn read_block<'a>(block: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    match block.get_unique_text("type")?.as_deref() {
        Some("tool_result") => {
            add_result(block, builder);
            Ok(())
        }
        Some(kind) if is_block(kind) => {
            let turn = builder.open_turn(Dialect::Anthropic, AnswerForm::Block);
            add_block(block, turn, builder).map(drop)
        }
        _ => Err(DocumentError::new(
            block.json(),
            "this isn't a message, request, or content block",
        )),
    }
}

fn read_message<'a>(message: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    if message.get_unique_text("role")?.as_deref() != Some("assistant") {
        return read_results(message, builder);
    }
    let turn = builder.open_turn(Dialect::Anthropic, AnswerForm::Message);
    read_assistant_message(message, turn, builder)
}

/// Adds the calls of an assistant message, or of part of one, to its turn.
pub fn read_assistant_message<'a>(
    message: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    builder.set_message(turn, message);
    let reason = message.get_unique_text("stop_reason")?.unwrap_or_default();
    if reason == "tool_use" && !message.has_value("content") {
        let text = "the message stops for a tool call, but has no `content`";
        return Err(DocumentError::new(message.json(), text));
    }
    let content = content_blocks(message)?.into_iter().flatten();
    let ends_in_call = add_blocks(content, turn, builder)?;
    builder.set_cut_off(turn, is_cut_off_reason(&reason) && ends_in_call);
    if reason == REFUSAL_REASON {
        builder.mark_refused(turn);
    }
    Ok(())
}

/// Returns whether a message with this stop reason was cut off.
pub fn is_cut_off_reason(reason: &str) -> bool {
    CUT_OFF_REASONS.contains(&reason)
}

/// Adds the results in a user message.
pub fn read_results<'a>(
    message: &ParsedObject<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    for block in content_blocks(message)?.into_iter().flatten().flatten() {
        if block.get_unique_text("type")?.as_deref() == Some("tool_result") {
            add_result(&block, builder);
        }
    }
    Ok(())
}

fn add_result(block: &ParsedObject, builder: &mut IndexBuilder) {
    if let Some(id) = block.get_text("tool_use_id") {
        builder.add_result(&id, block.json());
    }
}

/// Returns the blocks of a message, or `None` if it has a text instead.
fn content_blocks<'a>(
    message: &ParsedObject<'a>,
) -> Result<Option<ObjectIter<'a>>, DocumentError<'a>> {
    let Some(content) = message.get_unique("content")? else {
        return Ok(None);
    };
    match (content.objects(), content.kind()) {
        (Some(blocks), _) => Ok(Some(blocks)),
        (None, JsonKind::String | JsonKind::Null) => Ok(None),
        (None, other) => {
            let message = format!("`content` must be a string or an array of blocks, not {other}");
            Err(DocumentError::new(content, message))
        }
    }
}

/// Adds the calls and results among `blocks`, and returns whether the last block is a call.
fn add_blocks<'a>(
    blocks: impl IntoIterator<Item = Result<ParsedObject<'a>, JsonText<'a>>>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    blocks.into_iter().try_fold(false, |_, block| {
        let block =
            block.map_err(|other| DocumentError::not_an_object("a content block", other))?;
        add_block(&block, turn, builder)
    })
}

/// Adds a block if it's a call or a result, and returns whether it's a call.
fn add_block<'a>(
    block: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let kind = block.get_unique_text("type")?;
    let kind =
        kind.ok_or_else(|| DocumentError::new(block.json(), "a content block has no `type`"))?;
    if kind == "tool_use" {
        builder.add_call(turn, block.json(), block.get_text("id").as_deref())?;
    } else if kind == "tool_result" {
        add_result(block, builder);
    }
    Ok(kind == "tool_use")
}

/// Parses a `tool_use` block.
pub fn parse_call(block: &ParsedObject) -> RawCall {
    let input = block.get("input");
    let input = broken_input(input).map_or_else(|| parse_input(input), Err);
    RawCall::new(block.get_text("id"), block.get_text("name"), input).reject_duplicate_keys(block)
}

/// Returns what is wrong with a streamed input that isn't valid JSON. In a body, it's a string.
fn broken_input(input: Option<JsonText>) -> Option<InvalidInput> {
    let text = input?.to_text().filter(|text| text.starts_with('{'))?;
    Input::parse(&text).err()
}

/// Parses a `tool_result` block.
pub fn parse_result(block: &ParsedObject) -> RecordedResult {
    let is_error = block
        .get("is_error")
        .is_some_and(|json| json.get() == "true");
    RecordedResult {
        is_error: Some(is_error),
        ..plain_result(block.get("content"))
    }
}
