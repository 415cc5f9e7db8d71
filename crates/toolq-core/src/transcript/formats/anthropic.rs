//! Documents of Anthropic's Messages API: a response or message, a request, an array of messages or content blocks, or
//! a single block.

mod sse;

use crate::json::{JsonEdits, JsonKind, JsonText, ObjectIter, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::formats::conversation::{
    add_result, add_unknown_kind, add_unknown_members, is_said, read_objects, read_others,
};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{RawCall, invalid_input_object, plain_result, read_input};
use crate::types::{AnswerForm, Dialect, RecordedResult, ResponseEnding};

/// Types of content blocks, other than those that end in `tool_result`.
const BLOCK_TYPES: [&str; 11] = [
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
    "compaction",
];

/// Types of content blocks that only this dialect has.
const OWN_BLOCK_TYPES: [&str; 5] = [
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
];

/// The Messages API.
pub(crate) struct Anthropic;

impl Format for Anthropic {
    fn recognizes(&self, object: &ParsedObject, content: &[ParsedObject]) -> bool {
        if !object.has_value("role") {
            let kind = object.get_text("type");
            return kind.is_some_and(|kind| is_block(&kind)) || is_message_without_role(object);
        }
        let is_own = |block: &ParsedObject| {
            let kind = block.get_text("type");
            kind.is_some_and(|kind| OWN_BLOCK_TYPES.contains(&&*kind))
        };
        object.get("stop_reason").is_some() || content.iter().any(is_own)
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        if let Some(items) = document.json.objects() {
            builder.enter_document();
            return read_list(items, builder);
        }
        let Some(object) = &document.object else {
            return Err(DocumentError::not_an_object("a message", document.json));
        };
        if let Some(history) = object.get_unique("messages")? {
            builder.enter_document();
            builder.mark_request();
            let messages = history
                .objects()
                .ok_or_else(|| DocumentError::not_an_array("messages", history))?;
            return read_messages(messages, builder);
        }
        if is_response(object) {
            builder.enter_document();
        }
        if object.has_value("role") {
            read_message(object, builder)
        } else if is_message_without_role(object) {
            let turn = builder.open_turn(Dialect::Anthropic, AnswerForm::Message);
            read_assistant_message(object, turn, builder)
        } else {
            builder.enter_document();
            read_block(object, builder)
        }
    }

    fn parse_call(&self, block: &ParsedObject) -> RawCall {
        let input = read_input(&[block], "input");
        RawCall::new(CallId::read(block, "id"), block.get_text("name"), input)
            .reject_duplicate_keys(block)
    }

    fn parse_result(&self, block: &ParsedObject) -> RecordedResult {
        let is_error = block
            .get("is_error")
            .is_some_and(|json| json.get() == "true");
        RecordedResult {
            is_error: Some(is_error),
            ..plain_result(block.get("content"))
        }
    }
}

/// Returns whether a message is a whole response.
fn is_response(message: &ParsedObject) -> bool {
    message.get("stop_reason").is_some() || message.get_text("type").as_deref() == Some("message")
}

/// Returns how a response with this stop reason ended.
pub(crate) fn ending(reason: &str) -> ResponseEnding {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => ResponseEnding::CutOff,
        "refusal" | "error" => ResponseEnding::Refused,
        _ => ResponseEnding::Complete,
    }
}

/// Returns whether a value with this `type` is a content block.
pub(crate) fn is_block(kind: &str) -> bool {
    BLOCK_TYPES.contains(&kind) || kind.ends_with("tool_result")
}

/// Returns whether an object is an assistant's message that lacks its `role`: it has a stop reason, or an array of
/// content blocks.
fn is_message_without_role(object: &ParsedObject) -> bool {
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
    read_objects(messages, "a message", |message| {
        read_message(message, builder)
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
    match message.get_unique_text("role")?.as_deref() {
        Some("assistant") => {
            let turn = builder.open_turn(Dialect::Anthropic, AnswerForm::Message);
            read_assistant_message(message, turn, builder)
        }
        role => read_other_message(message, role == Some("user"), builder),
    }
}

/// Adds the calls of an assistant message, or of part of one, to its turn.
pub(crate) fn read_assistant_message<'a>(
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
    add_unknown_members(message, &[], builder);
    let ending = ending(&reason).after(ends_in_call);
    builder.set_ending(turn, ending);
    Ok(())
}

/// Reads a message of anybody but the model: its results, and whether a person says something in it.
pub(crate) fn read_other_message<'a>(
    message: &ParsedObject<'a>,
    is_person: bool,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    for block in content_blocks(message)?.into_iter().flatten().flatten() {
        block.get_unique("type")?;
    }
    let says = |block: &ParsedObject| match block.get_text("type").as_deref() {
        Some("text") => block.get("text").is_some_and(is_said),
        kind => matches!(kind, Some("image" | "document")),
    };
    read_others(message, is_person, builder, says);
    Ok(())
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
    let mut ends_in_call = false;
    read_objects(blocks, "a content block", |block| {
        ends_in_call = add_block(block, turn, builder)?;
        Ok(())
    })?;
    Ok(ends_in_call)
}

/// Adds a block if it's a call or a result, and returns whether it's a call.
fn add_block<'a>(
    block: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let kind = block.get_unique_text("type")?;
    let kind = kind.ok_or_else(|| {
        let error = DocumentError::new(block.json(), "a content block has no `type`");
        error.with_hint("the block of a call says so: add `\"type\": \"tool_use\"`")
    })?;
    match &*kind {
        "tool_use" => {
            let (id, name) = (CallId::read(block, "id"), block.get_text("name"));
            builder.add_call(turn, block.json(), (&[&id], name.as_deref()))?;
        }
        "tool_result" => add_result(block, builder),
        kind if is_block(kind) => {}
        kind => add_unknown_kind(kind, block, builder),
    }
    Ok(kind == "tool_use")
}

// The content of an assistant message in the form in which the API takes it back.

/// Returns `content` with an object as the input of each call. The API refuses anything else, but a stream may bring an
/// input that isn't JSON, which the body of its response has as a string.
pub fn returnable_content(content: JsonText) -> String {
    let mut edits = JsonEdits::new(content.get());
    for block in content.objects().into_iter().flatten().flatten() {
        if block.get_text("type").as_deref() == Some("tool_use") {
            repair_input(&block, &mut edits);
        }
    }
    edits.apply()
}

fn repair_input<'a>(block: &ParsedObject<'a>, edits: &mut JsonEdits<'a>) {
    let given = block.get("input");
    if given.is_some_and(|input| input.kind() == JsonKind::Object) {
        return;
    }
    let object = match (read_input(&[block], "input"), given) {
        (Ok(input), _) => input.text().to_owned(),
        (Err(_), Some(given)) => {
            let text = given.to_text();
            invalid_input_object(text.as_deref().unwrap_or(given.get())).to_string()
        }
        (Err(fault), None) => invalid_input_object(&fault.to_string()).to_string(),
    };
    match given {
        Some(given) => edits.replace(given, object),
        None => edits.insert_at_end(block.json(), format!(",\"input\":{object}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned(content: &str) -> String {
        returnable_content(JsonText::new(content))
    }

    #[test]
    fn a_call_goes_back_with_an_object_as_its_input() {
        for (input, expected) in [
            (
                r#","input":"{\"x\": oops}""#,
                r#","input":{"INVALID_JSON":"{\"x\": oops}"}"#,
            ),
            (r#","input":"{\"x\": 1}""#, r#","input":{"x": 1}"#),
            (
                r#","arguments":{"x":1}"#,
                r#","arguments":{"x":1},"input":{"x":1}"#,
            ),
            (r#","input":[1]"#, r#","input":{"INVALID_JSON":"[1]"}"#),
            (r#","input":null"#, r#","input":{}"#),
            ("", r#","input":{}"#),
        ] {
            let call = |input: &str| {
                format!(r#"[{{"type":"text","text":"é"}},{{"type":"tool_use","id":"a"{input}}}]"#)
            };
            assert_eq!(returned(&call(input)), call(expected));
        }
    }

    #[test]
    fn everything_else_goes_back_byte_for_byte() {
        for content in [
            r#"[{"type":"tool_use","id":"a","input":{"x": 1.50}}, {"type":"thinking"}]"#,
            r#"[{"type":"tool_result","input":"x"},7]"#,
            "[]",
        ] {
            assert_eq!(returned(content), content);
        }
    }
}
