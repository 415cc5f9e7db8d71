//! The published JSON Schema of a record, generated from the types that are written. It accepts what a newer toolq may
//! add within the same major version: metadata members and record types.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use strum::{IntoEnumIterator as _, VariantNames as _};

use crate::records::{
    ApprovalRecord, CallContent, CallEndRecord, CallRecord, DescribeRecord, ListRecord,
    ModelResponseRecord, ProbeRecord, RecordKind, RecoveredRecord, ResolveRecord, ServerEndRecord,
    ServerStartRecord, SessionEndRecord, SessionRecord, StartRecord, StoredBlob, ToolsChangeRecord,
    TurnRecord,
};
use toolq_core::types::MaskedJson;

/// Returns the JSON Schema (2020-12) of one line of a session log.
pub fn log_schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut generator = settings
        .with(|settings| settings.contract = Contract::Serialize)
        .into_generator();
    let (names, mut type_schemas): (Vec<&str>, Vec<Value>) = RecordKind::VARIANTS
        .iter()
        .zip(RecordKind::iter())
        .filter(|(_, kind)| !matches!(kind, RecordKind::Other(_)))
        .map(|(name, kind)| (*name, type_schema(&kind, &mut generator)))
        .unzip();
    type_schemas.push(json!({
        "description": "A type that a newer toolq added. A reader may skip it unless its metadata has `must_understand: true`.",
        "properties": {"type": {"not": {"enum": names}}},
    }));
    let mut schema = record_schema();
    schema["oneOf"] = Value::Array(type_schemas);
    schema["$defs"] = Value::Object(generator.take_definitions(true));
    schema
}

/// Returns the schema of the members that all records have.
fn record_schema() -> Value {
    let hex = |digits: u32| format!("^[0-9a-f]{{{digits}}}$");
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A record of the toolq session log",
        "description": "One line of the file. docs/session-log.md documents the record types.",
        "type": "object",
        "properties": {
            "seq": {"description": "Number of the record in the file, counted from 0 without gaps.", "type": "integer", "minimum": 0},
            "id": {"description": "UUID version 7 of the record.", "type": "string", "format": "uuid"},
            "parentId": {"description": "The `id` of the record that this one belongs to; `null` for `session` and `recovered`.", "type": ["string", "null"], "format": "uuid"},
            "timestamp": {"description": "Milliseconds since 1970. Clocks can go backwards; only `seq` gives the order.", "type": "integer", "minimum": 0},
            "type": {"type": "string"},
            "content": true,
            "metadata": {"type": "object"},
            "crc": {"description": "CRC-32 of all bytes of the line before `,\"crc\":`, in hexadecimal.", "type": "string", "pattern": hex(8)},
        },
        "required": ["seq", "id", "parentId", "timestamp", "type", "content", "metadata", "crc"],
        "additionalProperties": false,
    })
}

fn type_schema(kind: &RecordKind, types: &mut SchemaGenerator) -> Value {
    let (content, metadata) = (content_schema(kind, types), metadata_schema(kind, types));
    let mut form = json!({
        "title": kind.name(),
        "properties": {"type": {"const": kind.name()}, "content": content, "metadata": metadata},
    });
    match kind {
        RecordKind::Session => form["properties"]["parentId"] = json!({"type": "null"}),
        // A torn end doesn't belong to any session.
        RecordKind::Recovered => {}
        _ => form["properties"]["parentId"] = json!({"type": "string"}),
    }
    form
}

/// Returns the schema of the content of a record, which is stored in a file if it is large.
fn content_schema(kind: &RecordKind, types: &mut SchemaGenerator) -> Schema {
    let content = match kind {
        RecordKind::ToolCall => CallContent::<MaskedJson<'_>>::json_schema(types),
        RecordKind::ToolResult | RecordKind::ToolSkipped | RecordKind::ToolInDoubt => {
            json_schema!({
                "description": "What the model reads: text, or an array of content blocks. It reads those of types that only MCP has as text.",
                "type": ["string", "array"],
                "items": {"type": "object"},
            })
        }
        RecordKind::ModelResponse => json_schema!({
            "description": "Body of the model API's response, with secrets masked. A streamed response is recorded as a whole.",
            "type": "object",
        }),
        RecordKind::DescribeEnd => json_schema!({
            "description": "The tool's description and input schema from now on; `null` if `describe` printed nothing usable.",
            "type": ["object", "null"],
            "properties": {"description": {"type": "string"}, "input_schema": {"type": "object"}},
        }),
        RecordKind::Resolve => json_schema!({"type": ["string", "null"]}),
        _ => return json_schema!({"type": "null"}),
    };
    let stored = types.subschema_for::<StoredBlob>();
    json_schema!({"anyOf": [content, stored]})
}

fn metadata_schema(kind: &RecordKind, types: &mut SchemaGenerator) -> Schema {
    match kind {
        RecordKind::Session => types.subschema_for::<SessionRecord>(),
        RecordKind::Turn => types.subschema_for::<TurnRecord>(),
        RecordKind::ModelResponse => types.subschema_for::<ModelResponseRecord<'_>>(),
        RecordKind::ToolCall => types.subschema_for::<CallRecord<'_>>(),
        RecordKind::Approval => types.subschema_for::<ApprovalRecord<'_>>(),
        RecordKind::ToolStart => types.subschema_for::<StartRecord<'_>>(),
        RecordKind::ToolResult | RecordKind::ToolSkipped | RecordKind::ToolInDoubt => {
            types.subschema_for::<CallEndRecord<'_>>()
        }
        RecordKind::ProbeStart | RecordKind::ProbeEnd => types.subschema_for::<ProbeRecord<'_>>(),
        RecordKind::DescribeStart | RecordKind::DescribeEnd => {
            types.subschema_for::<DescribeRecord<'_>>()
        }
        RecordKind::ListStart | RecordKind::ListEnd => types.subschema_for::<ListRecord<'_>>(),
        RecordKind::ServerStart => types.subschema_for::<ServerStartRecord<'_>>(),
        RecordKind::ServerEnd => types.subschema_for::<ServerEndRecord<'_>>(),
        RecordKind::ToolsChange => types.subschema_for::<ToolsChangeRecord>(),
        RecordKind::Resolve => types.subschema_for::<ResolveRecord<'_>>(),
        RecordKind::Recovered => types.subschema_for::<RecoveredRecord>(),
        RecordKind::SessionEnd => types.subschema_for::<SessionEndRecord>(),
        RecordKind::Other(_) => json_schema!({"type": "object"}),
    }
}
