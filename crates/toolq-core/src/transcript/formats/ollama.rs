//! Documents of Ollama's chat API: a response or the lines of a streamed one, a message, an array of messages, or a request.
//! Unlike in chat completions, arguments are objects, and calls need no ids: results name their tools.

use crate::json::{InvalidInput, JsonKind, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::formats::conversation::{
    add_results, has_speech, is_said, objects_at, read_objects, read_request, read_values,
};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{RawCall, non_empty_text, plain_result, read_input};
use crate::types::{AnswerForm, Dialect, RecordedResult, ResponseEnding};

/// What a list of messages or calls must have.
const EXPECTED: &str = "a message or tool call";

/// Ollama's chat API.
pub(crate) struct Ollama;

impl Format for Ollama {
    fn recognizes(&self, object: &ParsedObject, _: &[ParsedObject]) -> bool {
        if !object.has_value("role") {
            return object.has_value("done") && object.get_object("message").is_some();
        }
        let has_object = |call: ParsedObject| {
            let function = call.get_object("function");
            let arguments = function.and_then(|function| function.get("arguments"));
            !call.has_value("type")
                && arguments.is_some_and(|arguments| arguments.kind() == JsonKind::Object)
        };
        object.has_value("tool_name") || objects_at(object, "tool_calls").any(has_object)
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
        let Some(function) = call.get_object("function") else {
            return RawCall::new(id, None, Err(InvalidInput::Missing));
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

/// Reads a response, a message, or a request.
fn read_value<'a>(object: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    if object.has_value("role") {
        return read_message(object, builder);
    }
    if read_request(object, ("messages", EXPECTED), builder, read_message)? {
        return Ok(());
    }
    let Some(message) = object.get_unique("message")?.and_then(JsonText::object) else {
        let text = "this isn't a response, message, or request";
        return Err(DocumentError::new(object.json(), text));
    };
    builder.enter_document();
    // A streamed response is a line for each part, up to the one that is done.
    let turn = builder.open_running_turn(Dialect::Ollama, AnswerForm::Ollama);
    builder.set_message(turn, object);
    add_calls(&message, turn, builder)?;
    if object.get_text("done_reason").as_deref() == Some("length") {
        builder.set_ending(turn, ResponseEnding::CutOff);
    }
    if object.get("done").is_some_and(|done| done.get() == "true") {
        builder.close_running_turn();
    }
    Ok(())
}

fn read_message<'a>(message: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    match message.get_unique_text("role")?.as_deref() {
        Some("assistant") => {
            let turn = builder.open_turn(Dialect::Ollama, AnswerForm::Ollama);
            return add_calls(message, turn, builder);
        }
        Some("user") => {
            builder.others_speak();
            add_results(message, builder);
            let content = message.get("content");
            let says = |part: &ParsedObject| part.get("text").is_some_and(is_said);
            if has_speech(content, says) || message.has_value("images") {
                builder.person_speaks(content);
            }
        }
        _ => add_results(message, builder),
    }
    Ok(())
}

/// Adds the calls of a message to its turn.
fn add_calls<'a>(
    message: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    let calls = message
        .get_unique("tool_calls")?
        .and_then(JsonText::objects);
    read_objects(calls.into_iter().flatten(), EXPECTED, |call| {
        let function = call.get_object("function");
        let tool = function.and_then(|function| function.get_text("name"));
        let id = CallId::read(call, "id");
        builder.add_call(turn, call.json(), (&[&id], tool.as_deref()))
    })
}
