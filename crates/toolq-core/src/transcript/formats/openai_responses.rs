//! Documents of the `OpenAI` responses API: a response, a request, an array of items, or a single item. Calls are
//! separate items, so a turn is a run of consecutive items from the model.

mod sse;

use crate::json::{InvalidInput, JsonKind, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::formats::conversation::{
    self, has_speech, is_said, may_be_call, objects_at, read_objects,
};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{
    CUSTOM_CALL, RawCall, expect_text, find_input, plain_result, read_input,
};
use crate::types::{AnswerForm, Dialect, RecordedResult, ResponseEnding};

/// Types of items that are no calls, or whose calls the API runs.
const API_ITEMS: [&str; 12] = [
    "message",
    "program",
    "reasoning",
    "item_reference",
    "compaction",
    "compaction_summary",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
];

/// Types of calls for other programs than toolq. A response without other calls is no error.
const FOREIGN_CALLS: [&str; 6] = [
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "tool_search_call",
    "mcp_approval_request",
];

/// The Responses API.
pub(crate) struct OpenAiResponses;

impl Format for OpenAiResponses {
    fn recognizes(&self, object: &ParsedObject, content: &[ParsedObject]) -> bool {
        if object.has_value("role") {
            let is_own = |part: &ParsedObject| {
                let kind = part.get_text("type");
                kind.is_some_and(|kind| matches!(&*kind, "input_text" | "output_text"))
            };
            return content.iter().any(is_own);
        }
        let kind_of = |key| object.get(key).map(JsonText::kind);
        match object.get_text("type") {
            Some(kind) => is_item(&kind),
            None => {
                object.get_text("object").as_deref() == Some("response")
                    || kind_of("output") == Some(JsonKind::Array)
                    || matches!(kind_of("input"), Some(JsonKind::Array | JsonKind::String))
            }
        }
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        if let Some(found) = document.json.objects() {
            return read_items(found, builder);
        }
        let Some(object) = &document.object else {
            return Err(DocumentError::not_an_object("an item", document.json));
        };
        if object.has_value("type") || object.has_value("role") {
            return read_item(object, builder);
        }
        if let Some(output) = object.get_unique("output")? {
            return read_response(object, output, builder);
        }
        let Some(input) = object.get_unique("input")? else {
            let message = "this isn't a response, request, or item";
            return Err(DocumentError::new(document.json, message));
        };
        builder.mark_request();
        read_items(input.objects().into_iter().flatten(), builder)
    }

    /// Results refer to the `call_id` of an item; its `id` identifies the item itself.
    fn parse_call(&self, item: &ParsedObject) -> RawCall {
        let (id, name) = (CallId::read(item, "call_id"), item.get_text("name"));
        let call = if item.get_text("type").as_deref() == Some(CUSTOM_CALL) {
            let text = find_input(&[item], "input");
            let text = text.and_then(|text| text.map_or(Ok("".into()), expect_text));
            RawCall::custom(id, name, text.as_deref().map_err(InvalidInput::clone))
        } else {
            RawCall::new(id, name, read_input(&[item], "arguments"))
        };
        call.reject_duplicate_keys(item)
    }

    fn parse_result(&self, item: &ParsedObject) -> RecordedResult {
        plain_result(item.get("output"))
    }
}

/// Returns whether a value with this `type` is a call that toolq runs.
pub(crate) fn is_call(kind: &str) -> bool {
    kind == "function_call" || kind == CUSTOM_CALL
}

/// What an item is that isn't a call that toolq runs.
pub(crate) enum OtherItem<'k> {
    /// Nothing that asks for anything, or something that the API runs itself.
    Api,
    /// The answer to an item of this type.
    Answer(&'k str),
    /// A request that toolq doesn't run. It is an error if nothing else is there and it `may_be_call` without being known.
    Unknown { may_be_call: bool },
}

/// Returns what an item with this `type` is that isn't a call that toolq runs.
pub(crate) fn classify_item<'k>(kind: &'k str, item: &ParsedObject) -> OtherItem<'k> {
    let is_run_by_api = item.get_text("execution").as_deref() == Some("server");
    match kind.strip_suffix("_output") {
        _ if item.has_value("role") || API_ITEMS.contains(&kind) || is_run_by_api => OtherItem::Api,
        Some(answered) => OtherItem::Answer(answered),
        None if kind == "mcp_approval_response" => OtherItem::Answer("mcp_approval_request"),
        None => OtherItem::Unknown {
            may_be_call: !FOREIGN_CALLS.contains(&kind) && may_be_call(kind, item),
        },
    }
}

/// Returns whether a value with this `type` is an item of a conversation.
fn is_item(kind: &str) -> bool {
    matches!(kind, "reasoning" | "item_reference")
        || kind.ends_with("_call")
        || kind.ends_with("_call_output")
}

/// Reads a response. Its output is one turn, even if the API ran tools of its own in between.
fn read_response<'a>(
    response: &ParsedObject<'a>,
    output: JsonText<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    builder.enter_document();
    let has_call = objects_at(response, "output").any(|item| {
        let kind = item.get_text("type");
        kind.is_some_and(|kind| is_call(&kind))
    });
    let output = output
        .objects()
        .ok_or_else(|| DocumentError::not_an_array("output", output))?;
    let error = response.get("error").filter(|error| !error.is_null());
    // A response that failed after it made calls is answered, so that the conversation can continue.
    if let Some(error) = error.filter(|_| !has_call) {
        return Err(DocumentError::new(error, "the API returned an error"));
    }
    let turn = builder.open_turn(Dialect::OpenAiResponses, AnswerForm::OpenAiResponses);
    builder.set_message(turn, response);
    let mut ends_in_call = false;
    read_objects(output, EXPECTED, |item| {
        ends_in_call = add_part(item, turn, builder)?;
        Ok(())
    })?;
    let status = response.get_unique_text("status")?.unwrap_or_default();
    match ending(&status, response) {
        ResponseEnding::Complete if error.is_some() => {
            builder.set_ending(turn, ResponseEnding::Refused);
        }
        ResponseEnding::Complete => {}
        ending => builder.set_ending(turn, ending.after(ends_in_call)),
    }
    Ok(())
}

/// Returns how a response with this status ended.
pub(crate) fn ending(status: &str, response: &ParsedObject) -> ResponseEnding {
    let details = response.get_object("incomplete_details");
    let reason = details.and_then(|details| details.get_text("reason"));
    match status {
        "failed" | "cancelled" => ResponseEnding::Refused,
        _ if reason.as_deref() == Some("content_filter") => ResponseEnding::Refused,
        "incomplete" => ResponseEnding::CutOff,
        _ => ResponseEnding::Complete,
    }
}

/// What a list of items must have.
const EXPECTED: &str = "an item";

/// Reads a conversation.
fn read_items<'a>(
    items: impl IntoIterator<Item = Result<ParsedObject<'a>, JsonText<'a>>>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    builder.enter_document();
    builder.close_running_turn();
    read_objects(items, EXPECTED, |item| read_item(item, builder))?;
    builder.close_running_turn();
    Ok(())
}

/// Reads one item of a conversation.
pub(crate) fn read_item<'a>(
    item: &ParsedObject<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    let role = item.get_unique_text("role")?;
    let kind = item.get_unique_text("type")?.unwrap_or_default();
    match role.as_deref() {
        None | Some("assistant") if !is_result(&kind) => {
            let turn =
                builder.open_running_turn(Dialect::OpenAiResponses, AnswerForm::OpenAiResponses);
            return add_part(item, turn, builder).map(drop);
        }
        Some("user") => {
            builder.chains.others_speak();
            let says = |part: &ParsedObject| part.get("text").is_none_or(is_said);
            let content = item.get("content");
            if has_speech(content, says) {
                builder.person_speaks(content);
            }
        }
        _ if is_result(&kind) => add_result(item, builder),
        _ => {}
    }
    builder.close_running_turn();
    Ok(())
}

/// Returns whether an item of this type answers a call that toolq runs.
fn is_result(kind: &str) -> bool {
    kind.strip_suffix("_output").is_some_and(is_call)
}

fn add_result(item: &ParsedObject, builder: &mut IndexBuilder) {
    conversation::add_result(item, builder);
}

/// Adds an item to the model's turn, and returns whether it's a call.
fn add_part<'a>(
    item: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let kind = item.get_unique_text("type")?.unwrap_or_default();
    let is_call = is_call(&kind);
    if is_call {
        let (id, name) = (CallId::read(item, "call_id"), item.get_text("name"));
        let item_id = CallId::read(item, "id");
        let ids = [&id, &item_id];
        builder.add_call(turn, item.json(), (&ids, name.as_deref()))?;
    } else if is_result(&kind) {
        // The API ran the call itself.
        add_result(item, builder);
    } else {
        match classify_item(&kind, item) {
            OtherItem::Api => {}
            OtherItem::Answer(answered) => builder.chains.answer_unknown_kind(answered),
            OtherItem::Unknown { may_be_call } => {
                builder.note_foreign_call(&CallId::read(item, "call_id"));
                builder.chains.add_unknown_kind(&kind, may_be_call);
            }
        }
    }
    let incomplete = item.get_unique_text("status")?.as_deref() == Some("incomplete");
    let ending = if incomplete && is_call {
        ResponseEnding::CutOff
    } else {
        ResponseEnding::Complete
    };
    builder.set_ending(turn, ending);
    Ok(is_call)
}
