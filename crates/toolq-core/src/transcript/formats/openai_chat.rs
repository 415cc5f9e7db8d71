//! Documents of `OpenAI` chat completions: a response, a message, an array of messages, or a request. Also the
//! trajectories of benchmarks, which have such an array under `traj` or `history`.

mod sse;

use crate::json::{InvalidInput, JsonKind, JsonText, ObjectIter, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::formats::conversation::{
    add_results, add_unknown_members, alternatives_error, is_result, is_said, objects_at,
    read_objects, read_others, read_values,
};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{
    RawCall, expect_text, find_input, non_empty_text, plain_result, read_input,
};
use crate::types::{AnswerForm, Dialect, RecordedResult, ResponseEnding};

/// Keys of the messages in a request or a trajectory.
const HISTORY_KEYS: [&str; 3] = ["messages", "traj", "history"];

/// What a list of messages or calls must have.
pub(super) const EXPECTED: &str = "a message or tool call";

/// What its calls are, and how they are answered.
const FORM: (Dialect, AnswerForm) = (Dialect::OpenAiChat, AnswerForm::OpenAiChat);

/// Chat completions.
pub(crate) struct OpenAiChat;

impl Format for OpenAiChat {
    fn recognizes(&self, object: &ParsedObject, content: &[ParsedObject]) -> bool {
        let is_array = |list: JsonText| list.kind() == JsonKind::Array;
        let has_array = |key| object.get(key).is_some_and(is_array);
        if !object.has_value("role") {
            return object.has_value("choices") || has_array("traj") || has_array("history");
        }
        let is_own = |part: &ParsedObject| {
            let kind = part.get_text("type");
            kind.is_some_and(|kind| matches!(&*kind, "image_url" | "input_audio"))
        };
        object.get_text("role").as_deref() == Some("tool")
            || ["tool_calls", "function_call"]
                .iter()
                .any(|key| object.has_value(key))
            || content.iter().any(is_own)
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        read_values(document, EXPECTED, builder, read_value)
    }

    fn parse_call(&self, call: &ParsedObject) -> RawCall {
        let id = CallId::read(call, "id");
        if let Some(custom) = call.get_object("custom") {
            let text = find_input(&[&custom, call], "input");
            let text = text.and_then(|text| text.map_or(Ok("".into()), expect_text));
            let text = text.as_deref().map_err(InvalidInput::clone);
            return RawCall::custom(id, non_empty_text(&custom, "name"), text)
                .reject_duplicate_keys(&custom)
                .reject_duplicate_keys(call);
        }
        let Some(function) = call.get_object("function") else {
            let kind = call.get_text("type").unwrap_or_default();
            let kind = InvalidInput::UnknownKind(kind.into_owned());
            return RawCall::new(id, Some("".into()), Err(kind));
        };
        let arguments = read_input(&[&function, call], "arguments");
        RawCall::new(id, non_empty_text(&function, "name"), arguments)
            .reject_duplicate_keys(&function)
            .reject_duplicate_keys(call)
    }

    fn parse_result(&self, message: &ParsedObject) -> RecordedResult {
        plain_result(message.get("content"))
    }
}

/// Returns how a response with this finish reason ended.
pub(crate) fn ending(reason: &str) -> ResponseEnding {
    match reason {
        "length" => ResponseEnding::CutOff,
        "content_filter" | "error" => ResponseEnding::Refused,
        _ => ResponseEnding::Complete,
    }
}

/// Reads a response, a message, or an object with messages.
fn read_value<'a>(object: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    if object.has_value("choices") {
        builder.enter_document();
        return read_response(object, builder);
    }
    if object.has_value("role") {
        return read_message(object, FORM, builder);
    }
    let Some(history) = find_history(object)? else {
        let text = "this isn't a response, message, or request";
        return Err(DocumentError::new(object.json(), text));
    };
    builder.enter_document();
    builder.mark_request();
    read_objects(history, EXPECTED, |entry| {
        read_message(entry, FORM, builder)
    })
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

/// Reads the choice of a response that has calls, or else the first one.
fn read_response<'a>(
    response: &ParsedObject<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    let choices = response.get_unique("choices")?.unwrap_or(response.json());
    let found: Vec<ParsedObject> = choices.objects().into_iter().flatten().flatten().collect();
    let mut calling = found.iter().filter(|choice| has_calls(choice));
    let choice = calling
        .next()
        .or(found.first())
        .ok_or_else(|| DocumentError::new(choices, "`choices` has no choice"))?;
    if let Some(other) = calling.next() {
        return Err(alternatives_error(other.json()));
    }
    let message = choice
        .get_unique("message")?
        .and_then(JsonText::object)
        .ok_or_else(|| {
            DocumentError::new(choice.json(), "the choice has no `message`")
                .with_hint("a single chunk of a stream isn't enough: pass the complete response")
        })?;
    let reason = choice.get_unique_text("finish_reason")?.unwrap_or_default();
    let turn = builder.open_turn(FORM.0, FORM.1);
    add_calls(&message, turn, ending(&reason), builder)?;
    builder.set_message(turn, response);
    if choice.has_value("error") || response.has_value("error") {
        builder.set_ending(turn, ResponseEnding::Refused);
    }
    Ok(())
}

fn has_calls(choice: &ParsedObject) -> bool {
    let message = choice.get_object("message");
    message.is_some_and(|message| objects_at(&message, "tool_calls").next().is_some())
}

/// Reads a message, whose calls have this dialect and form.
pub(super) fn read_message<'a>(
    message: &ParsedObject<'a>,
    (dialect, form): (Dialect, AnswerForm),
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    match message.get_unique_text("role")?.as_deref() {
        Some("assistant") => {
            let turn = builder.open_turn(dialect, form);
            add_calls(message, turn, ResponseEnding::Complete, builder)
        }
        Some("user") => {
            let says =
                |part: &ParsedObject| !is_result(part) && part.get("text").is_none_or(is_said);
            read_others(message, true, builder, says);
            Ok(())
        }
        _ => {
            add_results(message, builder);
            Ok(())
        }
    }
}

/// Adds the calls of one message to its turn. Calls follow the text, so a message that was cut off was cut in its last call.
pub(super) fn add_calls<'a>(
    message: &ParsedObject<'a>,
    turn: usize,
    ending: ResponseEnding,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    if has_refusal(message) {
        builder.set_ending(turn, ResponseEnding::Refused);
    }
    add_unknown_members(message, &["tool_calls", "function_call"], builder);
    let Some(calls) = message
        .get_unique("tool_calls")?
        .filter(|calls| !calls.is_null())
    else {
        return reject_legacy_call(message);
    };
    let calls = calls
        .objects()
        .ok_or_else(|| DocumentError::not_an_array("tool_calls", calls))?;
    let mut has_calls = false;
    read_objects(calls, EXPECTED, |call| {
        has_calls = true;
        let tool = ["function", "custom"]
            .iter()
            .find_map(|kind| call.get_object(kind));
        let tool = tool.as_ref().and_then(|tool| tool.get_text("name"));
        let id = CallId::read(call, "id");
        builder.add_call(turn, call.json(), (&[&id], tool.as_deref()))
    })?;
    builder.set_ending(turn, ending.after(has_calls));
    Ok(())
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
