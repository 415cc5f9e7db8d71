//! Claude Code's session logs: one content block per line. Lines with the same `message.id` are one turn, even with
//! results between them.

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentResult;
use crate::transcript::formats::Format;
use crate::transcript::formats::anthropic::{
    Anthropic, read_assistant_message, read_other_message,
};
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::types::{AnswerForm, Dialect, RecordedResult};

/// Keys that identify a line or its session. The last one is used in what Claude Code prints instead of logging.
const SESSION_KEYS: [&str; 3] = ["sessionId", "uuid", "session_id"];

/// Marks of messages that Claude Code wrote in a person's place.
const OWN_MARKS: [&str; 3] = ["isMeta", "isCompactSummary", "isVisibleInTranscriptOnly"];

/// A session log.
pub(crate) struct ClaudeCode;

impl Format for ClaudeCode {
    fn recognizes(&self, object: &ParsedObject) -> bool {
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
