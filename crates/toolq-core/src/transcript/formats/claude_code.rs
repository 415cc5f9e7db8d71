//! Claude Code's session logs: one content block per line. Lines with the same `message.id` are one turn, even with
//! results between them.

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentResult;
use crate::transcript::formats::anthropic;
use crate::transcript::index_builder::IndexBuilder;
use crate::types::{AnswerForm, Dialect};

/// Keys that identify a line or its session. The last one is used in what Claude Code prints instead of logging.
const SESSION_KEYS: [&str; 3] = ["sessionId", "uuid", "session_id"];

/// Returns whether an object is a line of such a log with a message.
pub fn is_log_line(object: &ParsedObject) -> bool {
    matches!(
        object.get_text("type").as_deref(),
        Some("user" | "assistant")
    ) && object.has_value("message")
        && SESSION_KEYS.iter().any(|key| object.has_value(key))
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
    let Some(message) = line.get_unique("message")?.and_then(JsonText::object) else {
        return Ok(());
    };
    match kind.as_deref() {
        Some("assistant") => {
            let turn = match message.get_unique_text("id")? {
                Some(id) => builder.open_named_turn(&id, Dialect::ClaudeCode, AnswerForm::Message),
                None => builder.open_turn(Dialect::ClaudeCode, AnswerForm::Message),
            };
            anthropic::read_assistant_message(&message, turn, builder)
        }
        Some("user") => anthropic::read_results(&message, builder),
        _ => Ok(()),
    }
}
