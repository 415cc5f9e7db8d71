//! Documents of Ollama's chat API: a response or the lines of a streamed one, a message, an array of messages, or a request.
//! Its messages are those of chat completions, except that arguments are objects, and calls need no ids: results name their tools.

use crate::json::{JsonKind, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::formats::conversation::{objects_at, read_request, read_values};
use crate::transcript::formats::openai_chat::{self, EXPECTED, OpenAiChat};
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::types::{AnswerForm, Dialect, RecordedResult, ResponseEnding};

/// What its calls are, and how they are answered.
const FORM: (Dialect, AnswerForm) = (Dialect::Ollama, AnswerForm::Ollama);

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
        OpenAiChat.parse_call(call)
    }

    fn parse_result(&self, message: &ParsedObject) -> RecordedResult {
        OpenAiChat.parse_result(message)
    }
}

/// Reads a response, a message, or a request.
fn read_value<'a>(object: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    let read_message = |message: &ParsedObject<'a>, builder: &mut IndexBuilder| {
        openai_chat::read_message(message, FORM, builder)
    };
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
    let turn = builder.open_running_turn(FORM.0, FORM.1);
    builder.set_message(turn, object);
    openai_chat::add_calls(&message, turn, ResponseEnding::Complete, builder)?;
    if object.get_text("done_reason").as_deref() == Some("length") {
        builder.set_ending(turn, ResponseEnding::CutOff);
    }
    if object.get("done").is_some_and(|done| done.get() == "true") {
        builder.close_running_turn();
    }
    Ok(())
}
