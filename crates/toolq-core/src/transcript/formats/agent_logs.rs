//! The session files of coding agents: Claude Code's logs and Codex' rollouts.

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::formats::anthropic::{
    Anthropic, read_assistant_message, read_other_message,
};
use crate::transcript::formats::openai_responses::{OpenAiResponses, read_item};
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::types::{AnswerForm, Dialect, RecordedResult, ResultContent};

/// Keys that identify a line or its session. The last one is used in what Claude Code prints instead of logging.
const SESSION_KEYS: [&str; 3] = ["sessionId", "uuid", "session_id"];

/// Marks of messages that Claude Code wrote in a person's place.
const OWN_MARKS: [&str; 3] = ["isMeta", "isCompactSummary", "isVisibleInTranscriptOnly"];

/// Claude Code's session logs: one content block per line. Lines with the same `message.id` are one turn, even with results
/// between them.
pub(crate) struct ClaudeCode;

impl Format for ClaudeCode {
    fn recognizes(&self, object: &ParsedObject, _: &[ParsedObject]) -> bool {
        let kind = object.get_text("type");
        matches!(kind.as_deref(), Some("user" | "assistant"))
            && object.has_value("message")
            && SESSION_KEYS.iter().any(|key| object.has_value(key))
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        let Some(line) = &document.object else {
            return Ok(());
        };
        let kind = line.get_unique_text("type")?;
        let Some(message) = line.get_unique("message")?.and_then(JsonText::object) else {
            return Ok(());
        };
        let has_mark = |key: &str| line.get(key).is_some_and(|mark| mark.get() == "true");
        let parent = line.get_text("parentUuid");
        if let Some(name) = line.get_text("uuid")
            && !builder.enter_line(&name, parent.as_deref(), has_mark("isSidechain"))
        {
            return Ok(());
        }
        match kind.as_deref() {
            Some("assistant") => {
                let (dialect, form) = (Dialect::ClaudeCode, AnswerForm::Message);
                let turn = match message.get_unique_text("id")? {
                    Some(id) => builder.open_named_turn(&id, dialect, form),
                    None => builder.open_turn(dialect, form),
                };
                read_assistant_message(&message, turn, builder)
            }
            Some("user") => {
                let is_person = !OWN_MARKS.iter().any(|mark| has_mark(mark));
                read_other_message(&message, is_person, builder)
            }
            _ => Ok(()),
        }
    }

    fn parse_call(&self, block: &ParsedObject) -> RawCall {
        Anthropic.parse_call(block)
    }

    fn parse_result(&self, block: &ParsedObject) -> RecordedResult {
        Anthropic.parse_result(block)
    }
}

// Codex rollouts: lines that wrap items of the `OpenAI` responses API, mixed with lines about the session.

/// Types of lines in a rollout.
const LINE_TYPES: [&str; 5] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
];

/// Events after which the calls of a turn get no results anymore.
const TURN_ENDS: [&str; 3] = ["turn_aborted", "task_complete", "turn_complete"];

/// A rollout.
pub(crate) struct Codex;

impl Format for Codex {
    fn recognizes(&self, object: &ParsedObject, _: &[ParsedObject]) -> bool {
        let kind = object.get_text("type");
        object.has_value("payload") && kind.is_some_and(|kind| LINE_TYPES.contains(&&*kind))
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        let Some(line) = &document.object else {
            return Ok(());
        };
        let kind = line.get_unique_text("type")?;
        let payload = line.get_unique("payload")?.and_then(JsonText::object);
        match (kind.as_deref(), payload) {
            (Some("response_item"), Some(item)) => read_item(&item, builder),
            (Some("event_msg"), Some(event)) => {
                let kind = event.get_unique_text("type")?;
                if kind.is_some_and(|kind| TURN_ENDS.contains(&&*kind)) {
                    builder.close_running_turn();
                    builder.go_past_calls();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn parse_call(&self, item: &ParsedObject) -> RawCall {
        OpenAiResponses.parse_call(item)
    }

    /// If the text of a result is JSON with an output and an exit code, the output is the result.
    fn parse_result(&self, item: &ParsedObject) -> RecordedResult {
        let unwrapped = OpenAiResponses.parse_result(item);
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
}
