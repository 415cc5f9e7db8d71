//! Codex rollouts: lines that wrap items of the `OpenAI` responses API, mixed with lines about the session.

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentResult;
use crate::transcript::formats::openai_responses;
use crate::transcript::index_builder::IndexBuilder;
use crate::types::{RecordedResult, ResultContent};

/// Types of lines in a rollout.
const LINE_TYPES: [&str; 5] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
];

/// Returns whether an object is a line of a rollout.
pub fn is_log_line(object: &ParsedObject) -> bool {
    let kind = object.get_text("type");
    object.has_value("payload") && kind.is_some_and(|kind| LINE_TYPES.contains(&&*kind))
}

/// Reads a line into the index.
pub fn read_document<'a>(
    document: &InputDocument<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    let Some(line) = &document.object else {
        return Ok(());
    };
    let kind = line.get_unique_text("type")?;
    match line.get_unique("payload")?.and_then(JsonText::object) {
        Some(item) if kind.as_deref() == Some("response_item") => {
            openai_responses::read_item(&item, builder)
        }
        _ => Ok(()),
    }
}

/// Parses a `function_call_output` item. If its text is JSON with an output and an exit code, the output is the result.
pub fn parse_result(item: &ParsedObject) -> RecordedResult {
    let unwrapped = openai_responses::parse_result(item);
    let ResultContent::Text(text) = &unwrapped.content else {
        return unwrapped;
    };
    let Ok(Some(wrapped)) = ParsedObject::parse(text) else {
        return unwrapped;
    };
    let metadata = wrapped.get_object("metadata");
    let exit_code = metadata.and_then(|metadata| metadata.get("exit_code"));
    match (wrapped.get_text("output"), exit_code) {
        (Some(output), Some(exit_code)) => RecordedResult {
            content: ResultContent::Text(output.into_owned()),
            is_error: Some(exit_code.get() != "0"),
            ..unwrapped
        },
        _ => unwrapped,
    }
}
