//! toolq's own session log. By `parentId`, a call refers to its turn, and a result to its call.

use crate::json::{Input, InvalidInput, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentResult, InputDocument};
use crate::transcript::formats::Format;
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{RawCall, plain_result};
use crate::transcript::reply_pairing::CallName;
use crate::types::{AnswerForm, Dialect, RecordedResult, Status};

/// Keys that every record has, besides `parentId`.
const RECORD_KEYS: [&str; 4] = ["seq", "id", "timestamp", "type"];

/// A session log.
pub(crate) struct SessionLog;

impl Format for SessionLog {
    fn recognizes(&self, object: &ParsedObject, _: &[ParsedObject]) -> bool {
        object.get("parentId").is_some() && RECORD_KEYS.iter().all(|key| object.has_value(key))
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        let Some(record) = &document.object else {
            return Ok(());
        };
        let kind = record.get_unique_text("type")?;
        let id = record.get_unique_text("id")?;
        let parent = record.get_unique_text("parentId")?;
        match (kind.as_deref(), id, parent) {
            // The calls of an agent's turn aren't calls of the input: if needed, the agent makes them again.
            (Some("turn"), ..) if is_agent_turn(record) => Ok(()),
            (Some("session"), ..) => {
                builder.logged_calls.begin_run();
                Ok(())
            }
            (Some("turn"), Some(id), _) => {
                builder.mark_request();
                builder.logged_calls.turns.insert(id.into_owned());
                Ok(())
            }
            (Some("tool_call"), Some(id), Some(parent)) => {
                let is_known = !builder.logged_calls.turns.contains(&*parent)
                    || builder.logged_calls.repeats(&id, record);
                if is_known {
                    return Ok(());
                }
                let turn = builder.open_named_turn(&parent, Dialect::Toolq, AnswerForm::Message);
                builder.add_named_call(turn, document.json, &[CallName::Id(&id)])
            }
            (Some(kind), _, Some(parent)) => {
                let call = builder.logged_calls.first_record(&parent).to_owned();
                read_call_record(kind, &call, (record, document.json), builder);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn parse_call(&self, record: &ParsedObject) -> RawCall {
        let metadata = record.get_object("metadata");
        let id_in = |object: &ParsedObject<'_>, key| {
            let id = object.get_text(key);
            id.map(|id| CallId::Text(id.into_owned().into()))
        };
        let id = metadata
            .as_ref()
            .and_then(|metadata| id_in(metadata, "tool_use_id"));
        let Some(content) = record.get_object("content") else {
            return RawCall::new(id.unwrap_or_default(), None, Ok(Input::empty()));
        };
        let fault = metadata.and_then(|metadata| metadata.get_text("input_fault"));
        let input = match (content.get("input").filter(|input| !input.is_null()), fault) {
            (None, Some(fault)) => Err(InvalidInput::Recorded(fault.into_owned())),
            (None, None) => Err(InvalidInput::Missing),
            (Some(input), _) => Input::parse(input.get()),
        };
        // Metadata has only part of a long id.
        let id = id_in(&content, "id").or(id).unwrap_or_default();
        RawCall::new(id, content.get_text("name"), input)
    }

    fn parse_result(&self, record: &ParsedObject) -> RecordedResult {
        let metadata = record.get_object("metadata");
        let is_error = metadata
            .as_ref()
            .and_then(|metadata| metadata.get("is_error"));
        let status = metadata
            .as_ref()
            .and_then(|metadata| metadata.get_text("status"));
        RecordedResult {
            is_error: is_error.map(|is_error| is_error.get() == "true"),
            skipped: record.get_text("type").as_deref() == Some("tool_skipped"),
            rejected: Some(status.is_some_and(|status| Status::from(&*status).is_rejected())),
            ..plain_result(record.get("content"))
        }
    }
}

fn is_agent_turn(turn: &ParsedObject) -> bool {
    let metadata = turn.get_object("metadata");
    metadata.is_some_and(|metadata| metadata.has_value("agent"))
}

/// Whether a result says only that the run ended. The result of an agent that used up its own budget is its own.
fn is_interrupted(result: &ParsedObject) -> bool {
    let metadata = result.get_object("metadata");
    metadata.is_some_and(|metadata| {
        let status = metadata.get_text("status");
        status.is_some_and(|status| Status::from(&*status).is_interrupted())
            && !metadata.has_value("budget_of")
    })
}

/// Reads a record that belongs to the call `id`. A call in doubt may have run, so it isn't open; a skipped call is.
fn read_call_record(
    kind: &str,
    id: &str,
    (record, json): (&ParsedObject, JsonText),
    builder: &mut IndexBuilder,
) {
    let reply = builder.reply_entry(json, kind == "tool_skipped");
    let pairing = &mut builder.pairing;
    match kind {
        "tool_start" => pairing.mark_started(id),
        "tool_result" if is_interrupted(record) => pairing.mark_interrupted(id, reply),
        "tool_result" | "tool_skipped" => {
            pairing.add_result(&[CallName::Id(id)], reply);
        }
        "tool_in_doubt" => pairing.mark_in_doubt(id, reply),
        "resolve" => {
            let metadata = record.get_object("metadata");
            let done = metadata.and_then(|metadata| metadata.get("done").map(JsonText::get));
            pairing.resolve_doubt(id, (done == Some("true")).then_some(reply));
        }
        _ => {}
    }
}
