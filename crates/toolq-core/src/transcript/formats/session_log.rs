//! toolq's own session log: a call names its turn by `parentId`, and a result its call.

use crate::json::{Json, Object};
use crate::transcript::document::Document;
use crate::transcript::formats::common::Read;
use crate::transcript::index_builder::Turns;
use crate::transcript::raw_call::Asked;
use crate::types::{Dialect, Form, Recorded};

/// What every record has.
const KEYS: [&str; 4] = ["seq", "id", "timestamp", "type"];

/// Whether an object is a record of such a log.
pub fn is_record(object: &Object) -> bool {
    object.get("parentId").is_some() && KEYS.iter().all(|key| object.has(key))
}

pub fn read<'a>(document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    let Some(record) = &document.object else {
        return Ok(());
    };
    let kind = record.text_once("type")?;
    let id = record.text_once("id")?;
    let parent = record.text_once("parentId")?;
    match (kind.as_deref(), id, parent) {
        // A turn of an agent, whose calls are no calls of an input: their agent asks for them again.
        (Some("turn"), ..) if is_of_agent(record) => Ok(()),
        (Some("turn"), Some(id), _) => {
            turns.open_named(&id, Dialect::Toolq, Form::Message);
            Ok(())
        }
        (Some("tool_call"), Some(id), Some(parent)) => match turns.named(&parent) {
            Some(turn) => turns.call(turn, document.json, Some(&*id)),
            None => Ok(()),
        },
        (Some(kind), _, Some(parent)) => {
            of_call(kind, &parent, (record, document.json), turns);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_of_agent(turn: &Object) -> bool {
    let metadata = turn.object("metadata");
    metadata.is_some_and(|metadata| metadata.has("agent"))
}

/// A record that belongs to the call `id`. What is in doubt may have run and is not asked again; what was skipped is.
fn of_call(kind: &str, id: &str, (record, json): (&Object, Json), turns: &mut Turns) {
    match kind {
        "tool_start" => turns.started(id),
        "tool_result" => turns.result(id, json),
        "tool_in_doubt" => turns.in_doubt(id, json),
        "tool_skipped" => turns.skipped(id, json),
        "resolve" => {
            let metadata = record.object("metadata");
            let done = metadata.and_then(|metadata| metadata.get("done").map(Json::get));
            turns.resolved(id, json, done == Some("true"));
        }
        _ => {}
    }
}

/// Reads a `tool_call` record.
pub fn asked(record: &Object) -> Asked {
    let metadata = record.object("metadata");
    let id = metadata.and_then(|metadata| metadata.text("tool_use_id"));
    let Some(content) = record.object("content") else {
        return Asked::new(id, None, Ok(crate::json::Input::empty()));
    };
    let input = crate::transcript::formats::common::input(content.get("input"));
    // Where the id is long, metadata has only a part of it.
    let id = content.text("id").or(id);
    Asked::new(id, content.text("name"), input)
}

/// Reads a `tool_result`, `tool_in_doubt` or `tool_skipped` record.
pub fn answered(record: &Object) -> Recorded {
    let metadata = record.object("metadata");
    let is_error = metadata.and_then(|metadata| metadata.get("is_error"));
    Recorded {
        is_error: is_error.map(|is_error| is_error.get() == "true"),
        skipped: record.text("type").as_deref() == Some("tool_skipped"),
        ..crate::transcript::formats::common::plain(record.get("content"))
    }
}
