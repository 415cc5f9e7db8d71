//! toolq's own session log: a call names its turn by `parentId`, and a result its call.

use super::super::pairing::Says;
use super::super::turns::Turns;
use super::{Asked, Document, Read};
use crate::model::json::{Json, Object};
use crate::model::{Dialect, Form};

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
        (Some("turn"), Some(id), _) => {
            turns.open_named(&id, Dialect::Toolq, Form::Message);
            Ok(())
        }
        (Some("tool_call"), Some(id), Some(parent)) => match turns.named(&parent) {
            Some(turn) => turns.call(turn, document.json, Some(&*id)),
            // An agent's own call: its agent asks for it again.
            None => Ok(()),
        },
        (Some(kind), _, Some(parent)) => {
            if let Some(says) = says(kind, record) {
                turns.says(&parent, says);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What a record of this type says of the call that it names. What is in doubt may have run and is not asked again; what
/// was skipped is.
fn says(kind: &str, record: &Object) -> Option<Says> {
    let done = || {
        record
            .object("metadata")
            .and_then(|metadata| metadata.get("done").map(Json::get))
    };
    match kind {
        "tool_start" => Some(Says::Started),
        "tool_result" => Some(Says::Result),
        "tool_in_doubt" => Some(Says::InDoubt),
        "resolve" if done() == Some("false") => Some(Says::NotDone),
        "resolve" => Some(Says::Result),
        _ => None,
    }
}

/// Reads a `tool_call` record.
pub fn asked(record: &Object) -> Asked {
    asked_apart(record, record.object("content").as_ref())
}

/// Reads a `tool_call` record with this content. A long id stands there whole.
pub fn asked_apart(record: &Object, content: Option<&Object>) -> Asked {
    let metadata = record.object("metadata");
    let id = metadata
        .as_ref()
        .and_then(|metadata| metadata.text("tool_use_id"));
    let Some(content) = content else {
        return Asked::new(id, None, Ok(crate::model::Input::empty()));
    };
    let input = super::input(content.get("input"));
    Asked::new(content.text("id").or(id), content.text("name"), input)
}
