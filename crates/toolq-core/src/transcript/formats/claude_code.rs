//! Claude Code's session logs: one content block a line. The lines of one `message.id` are one turn, and results may
//! stand between them.

use crate::json::{Json, Object};
use crate::transcript::document::Document;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::common::Read;
use crate::transcript::index_builder::Turns;
use crate::types::{Dialect, Form};

/// Keys by which a line names its session or itself; the last is what the program prints instead of logging.
const SESSION: [&str; 3] = ["sessionId", "uuid", "session_id"];

/// Whether an object is a line of such a log that holds a message.
pub fn is_line(object: &Object) -> bool {
    matches!(object.text("type").as_deref(), Some("user" | "assistant"))
        && object.has("message")
        && SESSION.iter().any(|key| object.has(key))
}

pub fn read<'a>(document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    let Some(line) = &document.object else {
        return Ok(());
    };
    let kind = line.text_once("type")?;
    let Some(message) = line.once("message")?.and_then(Json::object) else {
        return Ok(());
    };
    match kind.as_deref() {
        Some("assistant") => {
            let turn = match message.text_once("id")? {
                Some(id) => turns.open_named(&id, Dialect::ClaudeCode, Form::Message),
                None => turns.open(Dialect::ClaudeCode, Form::Message),
            };
            anthropic::answer(&message, turn, turns)
        }
        Some("user") => anthropic::results(&message, turns),
        _ => Ok(()),
    }
}
