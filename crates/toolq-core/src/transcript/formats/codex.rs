//! Codex rollouts: lines that wrap the items of `OpenAI` responses, among lines about the session.

use crate::json::{Json, Object};
use crate::transcript::document::Document;
use crate::transcript::formats::common::Read;
use crate::transcript::formats::openai_responses;
use crate::transcript::index_builder::Turns;
use crate::types::{Content, Recorded};

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

/// Reads a `function_call_output` item. Where its text is JSON of an output and how it ended, the output is the result.
pub fn answered(item: &Object) -> Recorded {
    let whole = openai_responses::answered(item);
    let Content::Text(text) = &whole.content else {
        return whole;
    };
    let Ok(Some(wrapped)) = Object::read(text) else {
        return whole;
    };
    let metadata = wrapped.object("metadata");
    let exit = metadata.and_then(|metadata| metadata.get("exit_code"));
    match (wrapped.text("output"), exit) {
        (Some(output), Some(exit)) => Recorded {
            content: Content::Text(output.into_owned()),
            is_error: Some(exit.get() != "0"),
            skipped: false,
        },
        _ => whole,
    }
}
