//! Documents of `OpenAI` chat completions: a response, a message, an array of messages, or a request. Also the
//! trajectories of benchmarks, which have such an array under `traj` or `history`.

use std::borrow::Cow;

use crate::json::{Input, JsonKind, JsonText, ObjectIter, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::{DocumentError, DocumentResult};
use crate::transcript::formats::call_input::parse_arguments;
use crate::transcript::formats::plain_result::plain_result;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::types::{AnswerForm, Dialect, RecordedResult};

/// Keys of the messages in a request or a trajectory.
const HISTORY_KEYS: [&str; 3] = ["messages", "traj", "history"];

/// The finish reason of a response that a filter of the API refused.
pub const REFUSAL_REASON: &str = "content_filter";

/// Returns whether only this dialect has such an object.
pub fn is_document(object: &ParsedObject) -> bool {
    let has_array = |key| {
        object
            .get(key)
            .is_some_and(|list| list.kind() == JsonKind::Array)
    };
    object.has_value("choices") || has_array("traj") || has_array("history")
}

/// Reads a document into the index.
pub fn read_document<'a>(
    document: &InputDocument<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    if let Some(mut items) = document.json.objects() {
        return items.try_for_each(|item| read_value(&expect_object(item)?, builder));
    }
    match &document.object {
        Some(object) => read_value(object, builder),
        None => Err(DocumentError::not_an_object("a message", document.json)),
    }
}

/// Returns the object, or an error for any other value.
pub fn expect_object<'a>(
    item: Result<ParsedObject<'a>, JsonText<'a>>,
) -> Result<ParsedObject<'a>, DocumentError<'a>> {
    item.map_err(|other| DocumentError::not_an_object("a message or tool call", other))
}

/// Reads a response, a message, or an object with messages.
fn read_value<'a>(object: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    if object.has_value("choices") {
        return read_response(object, builder);
    }
    if object.has_value("role") {
        return read_message(object, builder);
    }
    let Some(mut history) = find_history(object)? else {
        let text = "this isn't a response, message, or request";
        return Err(DocumentError::new(object.json(), text));
    };
    builder.mark_request();
    history.try_for_each(|entry| read_message(&expect_object(entry)?, builder))
}

/// Returns the messages of a request or a trajectory.
fn find_history<'a>(
    object: &ParsedObject<'a>,
) -> Result<Option<ObjectIter<'a>>, DocumentError<'a>> {
    for key in HISTORY_KEYS {
        if let Some(messages) = object.get_unique(key)?.and_then(JsonText::objects) {
            return Ok(Some(messages));
        }
    }
    Ok(None)
}

/// Reads the first choice of a response. The others are alternative responses to the same request.
fn read_response<'a>(
    response: &ParsedObject<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    let choices = response.get_unique("choices")?.unwrap_or(response.json());
    let choice = choices
        .objects()
        .and_then(|mut choices| choices.next()?.ok())
        .ok_or_else(|| DocumentError::new(choices, "`choices` has no choice"))?;
    let message = choice
        .get_unique("message")?
        .and_then(JsonText::object)
        .ok_or_else(|| {
            DocumentError::new(choice.json(), "the choice has no `message`")
                .with_hint("a single chunk of a stream isn't enough: pass the complete response")
        })?;
    let reason = choice.get_unique_text("finish_reason")?;
    let turn = add_turn(&message, reason.as_deref() == Some("length"), builder)?;
    builder.set_message(turn, response);
    if reason.as_deref() == Some(REFUSAL_REASON) {
        builder.mark_refused(turn);
    }
    Ok(())
}

fn read_message<'a>(message: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    match message.get_unique_text("role")?.as_deref() {
        Some("assistant") => add_turn(message, false, builder).map(drop),
        Some("tool") => {
            add_results(message, builder);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Adds a turn with the calls of one message, and returns its number. Calls follow the text, so a `cut_off` message was
/// cut in its last call.
fn add_turn<'a>(
    message: &ParsedObject<'a>,
    cut_off: bool,
    builder: &mut IndexBuilder,
) -> Result<usize, DocumentError<'a>> {
    let turn = builder.open_turn(Dialect::OpenAiChat, AnswerForm::OpenAiChat);
    if has_refusal(message) {
        builder.mark_refused(turn);
    }
    let Some(calls) = message
        .get_unique("tool_calls")?
        .filter(|calls| !calls.is_null())
    else {
        return reject_legacy_call(message).map(|()| turn);
    };
    let calls = calls
        .objects()
        .ok_or_else(|| DocumentError::not_an_array("tool_calls", calls))?;
    for call in calls {
        let call = expect_object(call)?;
        builder.add_call(turn, call.json(), call.get_text("id").as_deref())?;
        builder.set_cut_off(turn, cut_off);
    }
    Ok(turn)
}

/// Returns whether a message, or a piece of one, has a text in which the model refuses to answer.
pub fn has_refusal(message: &ParsedObject) -> bool {
    message
        .get_text("refusal")
        .is_some_and(|text| !text.is_empty())
}

/// Rejects a legacy `function_call` instead of ignoring it. It has no id that a result could refer to.
pub fn reject_legacy_call<'a>(message: &ParsedObject<'a>) -> DocumentResult<'a> {
    match message.get("function_call") {
        Some(call) if call.kind() == JsonKind::Object => {
            let error = DocumentError::new(call, "`function_call` was replaced by `tool_calls`");
            Err(error.with_hint("declare the functions under `tools` in the request"))
        }
        _ => Ok(()),
    }
}

/// Adds a `tool` message as the result of its call, or of several calls (SWE-agent).
fn add_results(message: &ParsedObject, builder: &mut IndexBuilder) {
    let several = message.get_elements("tool_call_ids").unwrap_or_default();
    let one = message.get("tool_call_id");
    for id in several.into_iter().chain(one).filter_map(JsonText::to_text) {
        builder.add_result(&id, message.json());
    }
}

/// Parses an entry of `tool_calls`.
pub fn parse_call(call: &ParsedObject) -> RawCall {
    let id = non_empty_text(call, "id");
    let Some(function) = call.get_object("function") else {
        return RawCall::new(id, None, Ok(Input::empty()));
    };
    let arguments = parse_arguments(function.get("arguments"));
    RawCall::new(id, non_empty_text(&function, "name"), arguments)
        .reject_duplicate_keys(&function)
        .reject_duplicate_keys(call)
}

/// Returns a text. An empty text counts as missing, because some servers send one instead of leaving it out.
fn non_empty_text<'a>(object: &ParsedObject<'a>, key: &str) -> Option<Cow<'a, str>> {
    object.get_text(key).filter(|text| !text.is_empty())
}

/// Parses a `tool` message.
pub fn parse_result(message: &ParsedObject) -> RecordedResult {
    plain_result(message.get("content"))
}
