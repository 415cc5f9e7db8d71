//! Documents of the `OpenAI` responses API: a response, a request, an array of items, or a single item. Calls are
//! separate items, so a turn is a run of consecutive items from the model.

use crate::json::{JsonKind, JsonText, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::{DocumentError, DocumentResult};
use crate::transcript::formats::call_input::parse_arguments;
use crate::transcript::formats::plain_result::plain_result;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::types::{AnswerForm, Dialect, RecordedResult};

/// Returns whether a value with this `type` is an item of a conversation.
fn is_item(kind: &str) -> bool {
    matches!(kind, "reasoning" | "item_reference")
        || kind.ends_with("_call")
        || kind.ends_with("_call_output")
}

/// Returns whether only this dialect has such an object.
pub fn is_document(object: &ParsedObject) -> bool {
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

/// Reads a document into the index.
pub fn read_document<'a>(
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

/// Reads a response. Its output is one turn, even if the API ran tools of its own in between.
fn read_response<'a>(
    response: &ParsedObject<'a>,
    output: JsonText<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    let has_call = has_call(output);
    let output = output
        .objects()
        .ok_or_else(|| DocumentError::not_an_array("output", output))?;
    // A response that failed after it made calls is answered, so that the conversation can continue.
    if let Some(error) = response.get("error").filter(|error| !error.is_null())
        && !has_call
    {
        return Err(DocumentError::new(error, "the API returned an error"));
    }
    let turn = builder.open_turn(Dialect::OpenAiResponses, AnswerForm::OpenAiResponses);
    builder.set_message(turn, response);
    let mut ends_in_call = false;
    for item in output {
        ends_in_call = add_call(&expect_item(item)?, turn, builder)?;
    }
    let status = response.get_unique_text("status")?.unwrap_or_default();
    if status == "incomplete" {
        builder.set_cut_off(turn, ends_in_call);
    }
    if matches!(&*status, "failed" | "cancelled") || is_filtered(response) {
        builder.mark_refused(turn);
    }
    Ok(())
}

/// Returns whether a filter of the API ended this response.
pub fn is_filtered(response: &ParsedObject) -> bool {
    let details = response.get_object("incomplete_details");
    let reason = details
        .as_ref()
        .and_then(|details| details.get_text("reason"));
    reason.as_deref() == Some("content_filter")
}

/// Returns whether a list of items has a call.
fn has_call(output: JsonText) -> bool {
    let items = output.objects().into_iter().flatten().flatten();
    items
        .into_iter()
        .any(|item| item.get_text("type").as_deref() == Some("function_call"))
}

fn read_items<'a>(
    items: impl IntoIterator<Item = Result<ParsedObject<'a>, JsonText<'a>>>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    builder.close_running_turn();
    for next in items {
        read_item(&expect_item(next)?, builder)?;
    }
    builder.close_running_turn();
    Ok(())
}

fn expect_item<'a>(
    item: Result<ParsedObject<'a>, JsonText<'a>>,
) -> Result<ParsedObject<'a>, DocumentError<'a>> {
    item.map_err(|other| DocumentError::not_an_object("an item", other))
}

/// Reads one item of a conversation.
pub fn read_item<'a>(item: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    let is_not_from_model = item
        .get_unique_text("role")?
        .is_some_and(|role| role != "assistant");
    let is_result = item.get_unique_text("type")?.as_deref() == Some("function_call_output");
    if is_not_from_model || is_result {
        builder.close_running_turn();
        if let Some(id) = item.get_text("call_id").filter(|_| is_result) {
            builder.add_result(&id, item.json());
        }
        return Ok(());
    }
    let turn = builder.open_running_turn(Dialect::OpenAiResponses, AnswerForm::OpenAiResponses);
    add_call(item, turn, builder).map(drop)
}

/// Adds `item` to its turn if it's a call, and returns whether it's one.
fn add_call<'a>(
    item: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let is_call = item.get_unique_text("type")?.as_deref() == Some("function_call");
    if is_call {
        builder.add_call(turn, item.json(), item.get_text("call_id").as_deref())?;
    }
    let incomplete = item.get_unique_text("status")?.as_deref() == Some("incomplete");
    builder.set_cut_off(turn, is_call && incomplete);
    Ok(is_call)
}

/// Parses a `function_call` item. Results refer to its `call_id`; its `id` identifies the item itself.
pub fn parse_call(item: &ParsedObject) -> RawCall {
    let arguments = parse_arguments(item.get("arguments"));
    RawCall::new(item.get_text("call_id"), item.get_text("name"), arguments)
        .reject_duplicate_keys(item)
}

/// Parses a `function_call_output` item.
pub fn parse_result(item: &ParsedObject) -> RecordedResult {
    plain_result(item.get("output"))
}
