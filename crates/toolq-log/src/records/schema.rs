//! The published JSON Schema of a record, generated from the types that are written. It accepts what a newer toolq may
//! add within the same major version: metadata members and record types.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::records::{
    ApprovalRecord, CallContent, CallEndRecord, CallRecord, DescribeRecord, LateResultRecord,
    ListRecord, ModelResponseRecord, ProbeRecord, RecordKind, RecoveredRecord, ResolveRecord,
    ServerEndRecord, ServerStartRecord, SessionEndRecord, SessionRecord, StartRecord, StoredBlob,
    ToolsChangeRecord, TurnRecord,
};

/// Returns the JSON Schema (2020-12) of one line of a session log.
pub fn log_schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut generator = settings
        .with(|settings| settings.contract = Contract::Serialize)
        .into_generator();
    let record_types = type_schemas(&mut generator);
    let names: Vec<Value> = record_types
        .iter()
        .map(|(kind, _)| json!(kind.name()))
        .collect();
    let mut type_schemas: Vec<Value> = record_types.into_iter().map(|(_, schema)| schema).collect();
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

/// Returns every record type with its schema.
fn type_schemas(generator: &mut SchemaGenerator) -> Vec<(RecordKind, Value)> {
    let null = || json_schema!({"type": "null"});
    let call = inline_or_blob_schema(generator, CallContent::json_schema);
    let answer = inline_or_blob_schema(generator, answer_schema);
    let result = generator.subschema_for::<CallEndRecord<'_>>();
    let session = generator.subschema_for::<SessionRecord>();
    let turn = generator.subschema_for::<TurnRecord>();
    let body = inline_or_blob_schema(
        generator,
        |_| json_schema!({"description": "Body of the model API's response, with secrets masked. A streamed response is recorded as a whole.", "type": "object"}),
    );
    let response = generator.subschema_for::<ModelResponseRecord<'_>>();
    let call_metadata = generator.subschema_for::<CallRecord<'_>>();
    let approval = generator.subschema_for::<ApprovalRecord<'_>>();
    let start = generator.subschema_for::<StartRecord<'_>>();
    let late_result = generator.subschema_for::<LateResultRecord<'_>>();
    let late_text = inline_or_blob_schema(generator, |_| json_schema!({"type": "string"}));
    let probe = generator.subschema_for::<ProbeRecord<'_>>();
    let describe = generator.subschema_for::<DescribeRecord<'_>>();
    let description = inline_or_blob_schema(generator, description_schema);
    let list = generator.subschema_for::<ListRecord<'_>>();
    let server_start = generator.subschema_for::<ServerStartRecord<'_>>();
    let server_end = generator.subschema_for::<ServerEndRecord<'_>>();
    let tools_change = generator.subschema_for::<ToolsChangeRecord>();
    let resolve = generator.subschema_for::<ResolveRecord<'_>>();
    let resolved = inline_or_blob_schema(generator, |_| json_schema!({"type": ["string", "null"]}));
    let recovered = generator.subschema_for::<RecoveredRecord>();
    let end = generator.subschema_for::<SessionEndRecord>();
    let type_schemas = [
        (RecordKind::Session, null(), session),
        (RecordKind::Turn, null(), turn),
        (RecordKind::ModelResponse, body, response),
        (RecordKind::ToolCall, call, call_metadata),
        (RecordKind::Approval, null(), approval),
        (RecordKind::ToolStart, null(), start),
        (RecordKind::ToolResult, answer.clone(), result.clone()),
        (RecordKind::ToolSkipped, answer.clone(), result.clone()),
        (RecordKind::ToolInDoubt, answer, result),
        (RecordKind::LateResult, late_text, late_result),
        (RecordKind::ProbeStart, null(), probe.clone()),
        (RecordKind::ProbeEnd, null(), probe),
        (RecordKind::DescribeStart, null(), describe.clone()),
        (RecordKind::DescribeEnd, description, describe),
        (RecordKind::ListStart, null(), list.clone()),
        (RecordKind::ListEnd, null(), list),
        (RecordKind::ServerStart, null(), server_start),
        (RecordKind::ServerEnd, null(), server_end),
        (RecordKind::ToolsChange, null(), tools_change),
        (RecordKind::Resolve, resolved, resolve),
        (RecordKind::Recovered, null(), recovered),
        (RecordKind::SessionEnd, null(), end),
    ];
    let type_schemas = type_schemas.into_iter().map(|(kind, content, metadata)| {
        let schema = type_schema(&kind, &content, &metadata);
        (kind, schema)
    });
    type_schemas.collect()
}

fn type_schema(kind: &RecordKind, content: &Schema, metadata: &Schema) -> Value {
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

/// Returns the schema of content that is stored in a file if it is large.
fn inline_or_blob_schema(
    generator: &mut SchemaGenerator,
    content: fn(&mut SchemaGenerator) -> Schema,
) -> Schema {
    let stored = generator.subschema_for::<StoredBlob>();
    let content = content(generator);
    json_schema!({"anyOf": [content, stored]})
}

/// Returns the schema of what a tool's `describe` program printed.
fn description_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "The tool's description and input schema from now on; `null` if `describe` printed nothing usable.",
        "type": ["object", "null"],
        "properties": {"description": {"type": "string"}, "input_schema": {"type": "object"}},
    })
}

/// Returns the schema of a call's result.
fn answer_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What the model reads: text, or an array of content blocks. It reads those of types that only MCP has as text.",
        "type": ["string", "array"],
        "items": {"type": "object"},
    })
}
