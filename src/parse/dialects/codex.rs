//! Codex rollouts: lines that wrap the items of `OpenAI` responses, among lines about the session.

use super::super::turns::Turns;
use super::{Document, Read, openai_responses};
use crate::model::json::{Json, Object};

/// The lines of a rollout.
const LINES: [&str; 5] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
];

/// Whether an object is a line of a rollout.
pub fn is_line(object: &Object) -> bool {
    let kind = object.text("type");
    object.has("payload") && kind.is_some_and(|kind| LINES.contains(&&*kind))
}

pub fn read<'a>(document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    let Some(line) = &document.object else {
        return Ok(());
    };
    let kind = line.text_once("type")?;
    match line.once("payload")?.and_then(Json::object) {
        Some(item) if kind.as_deref() == Some("response_item") => {
            openai_responses::item(&item, turns)
        }
        _ => Ok(()),
    }
}
