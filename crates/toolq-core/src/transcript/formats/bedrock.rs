//! Documents of Amazon Bedrock's Converse API: a response, a message, an array of messages, or a request. The only key of a
//! content block says what it is.

use crate::json::{DuplicateKey, InvalidInput, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::formats::conversation::{
    self, add_unknown_kind, is_said, objects_at, read_others, read_parts, read_request, read_values,
};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{RawCall, plain_result, read_input, unrecognized_object};
use crate::types::{AnswerForm, Dialect, RecordedResult, ResponseEnding};

/// Kinds of content blocks, besides calls and results.
const BLOCK_KEYS: [&str; 10] = [
    "text",
    "image",
    "document",
    "video",
    "audio",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
];

/// What a list of messages or blocks must have.
const EXPECTED: &str = "a message or content block";

/// The Converse API.
pub(crate) struct Bedrock;

impl Format for Bedrock {
    fn recognizes(&self, object: &ParsedObject, content: &[ParsedObject]) -> bool {
        let is_block = |block: &ParsedObject| {
            !block.has_value("type")
                && ["toolUse", "toolResult", "text"]
                    .iter()
                    .any(|key| block.has_value(key))
        };
        let is_message = || {
            object.has_value("role")
                && !object.has_value("tool_calls")
                && content.iter().any(is_block)
        };
        let is_call = || {
            object
                .get_object("toolUse")
                .is_some_and(|call| call.has_value("toolUseId"))
        };
        response_message(object).map_or(true, |message| message.is_some())
            || is_message()
            || is_call()
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        read_values(document, EXPECTED, builder, read_value)
    }

    fn parse_call(&self, block: &ParsedObject) -> RawCall {
        let Some(call) = block.get_object("toolUse") else {
            return RawCall::new(CallId::Missing, None, Err(InvalidInput::Missing));
        };
        let input = read_input(&[&call, block], "input");
        let id = CallId::read(&call, "toolUseId");
        RawCall::new(id, call.get_text("name"), input)
            .reject_duplicate_keys(&call)
            .reject_duplicate_keys(block)
    }

    fn parse_result(&self, result: &ParsedObject) -> RecordedResult {
        let is_error = result.get_text("status").as_deref() == Some("error");
        let blocks = result.get_elements("content").unwrap_or_default();
        let only = |key| match blocks.as_slice() {
            [block] => block.object()?.get(key),
            _ => None,
        };
        RecordedResult {
            is_error: Some(is_error),
            ..plain_result(only("text").or(only("json")).or(result.get("content")))
        }
    }
}

fn response_message<'a>(
    object: &ParsedObject<'a>,
) -> Result<Option<ParsedObject<'a>>, DuplicateKey<'a>> {
    let output = object.get_object("output");
    let message = match &output {
        Some(output) => output.get_unique("message")?,
        None => None,
    };
    Ok(message.and_then(JsonText::object))
}

fn ending(reason: &str) -> ResponseEnding {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => ResponseEnding::CutOff,
        "guardrail_intervened"
        | "content_filtered"
        | "malformed_model_output"
        | "malformed_tool_use" => ResponseEnding::Refused,
        _ => ResponseEnding::Complete,
    }
}

/// Reads a response, a message, a request, or a block.
fn read_value<'a>(object: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    if let Some(message) = response_message(object)? {
        builder.enter_document();
        let turn = builder.open_turn(Dialect::Bedrock, AnswerForm::Bedrock);
        let ends_in_call = read_blocks(&message, turn, builder)?;
        let reason = object.get_unique_text("stopReason")?.unwrap_or_default();
        builder.set_ending(turn, ending(&reason).after(ends_in_call));
        return Ok(());
    }
    if read_request(object, ("messages", EXPECTED), builder, read_message)? {
        return Ok(());
    }
    if object.has_value("role") {
        return read_message(object, builder);
    }
    let has_kind = |key: &str| object.has_value(key);
    if !has_kind("toolUse")
        && !has_kind("toolResult")
        && !BLOCK_KEYS.iter().any(|key| has_kind(key))
    {
        return Err(unrecognized_object(object));
    }
    let turn = builder.open_running_turn(Dialect::Bedrock, AnswerForm::Bedrock);
    read_block(object, turn, builder).map(drop)
}

fn read_message<'a>(message: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    if message.get_unique_text("role")?.as_deref() == Some("assistant") {
        let turn = builder.open_turn(Dialect::Bedrock, AnswerForm::Bedrock);
        return read_blocks(message, turn, builder).map(drop);
    }
    for block in objects_at(message, "content") {
        block.get_unique("toolResult")?;
    }
    let says = |block: &ParsedObject| {
        let kinds = ["image", "document", "video", "audio"];
        block.get("text").is_some_and(is_said) || kinds.iter().any(|kind| block.has_value(kind))
    };
    let is_person = message.get_text("role").as_deref() == Some("user");
    read_others(message, is_person, builder, says);
    Ok(())
}

/// Adds the calls and results of a message to the model's turn, and returns whether it ends in a call.
fn read_blocks<'a>(
    message: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let read = |block: &ParsedObject<'a>| read_block(block, turn, builder);
    read_parts(message, ("content", "a content block"), read)
}

/// Adds a block if it's a call or a result, and returns whether it's a call. The API runs some calls itself.
fn read_block<'a>(
    block: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    if let Some(call) = block.get_unique("toolUse")?.and_then(JsonText::object) {
        if call
            .get_text("type")
            .is_some_and(|kind| kind.starts_with("server"))
        {
            return Ok(false);
        }
        let (id, name) = (CallId::read(&call, "toolUseId"), call.get_text("name"));
        builder.add_call(turn, block.json(), (&[&id], name.as_deref()))?;
        return Ok(true);
    }
    let is_known = add_result(block, builder)? || BLOCK_KEYS.iter().any(|key| block.has_value(key));
    if let (false, Some((kind, _))) = (is_known, block.members().first()) {
        add_unknown_kind(kind, block, builder);
    }
    Ok(false)
}

/// Adds the result that a block has, if it has one.
fn add_result<'a>(
    block: &ParsedObject<'a>,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let Some(result) = block.get_unique("toolResult")?.and_then(JsonText::object) else {
        return Ok(false);
    };
    conversation::add_result(&result, builder);
    Ok(true)
}
