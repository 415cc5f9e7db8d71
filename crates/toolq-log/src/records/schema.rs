//! The published form of a record, made from the types that are written. It takes what a newer toolq adds under the same
//! major version: other members of metadata, other types of records.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::open::RecoveredFields as Recovered;
use crate::records::blob::Stored;
use crate::records::fields::{
    CallContent, CallFields, DescribeFields, EndFields, ProbeFields, ResolveFields, ResponseFields,
    ResultFields, SessionFields, StartFields, TurnFields,
};
use crate::records::kind::Kind;

/// JSON Schema (2020-12) of one line of a session log.
pub fn log_schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut generator = settings
        .with(|settings| settings.contract = Contract::Serialize)
        .into_generator();
    let types = types(&mut generator);
    let names: Vec<Value> = types.iter().map(|(kind, _)| json!(kind.name())).collect();
    let mut forms: Vec<Value> = types.into_iter().map(|(_, form)| form).collect();
    forms.push(json!({
        "description": "A type that a newer toolq added. Where it may not be passed over, its metadata has `must_understand: true`.",
        "properties": {"type": {"not": {"enum": names}}},
    }));
    let mut schema = record();
    schema["oneOf"] = Value::Array(forms);
    schema["$defs"] = Value::Object(generator.take_definitions(true));
    schema
}

/// The members of every record.
fn record() -> Value {
    let hex = |digits: u32| format!("^[0-9a-f]{{{digits}}}$");
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A record of toolq's session log",
        "description": "One line of the file. docs/session-log.md explains the records.",
        "type": "object",
        "properties": {
            "seq": {"description": "Its number in the file, from 0, without a gap.", "type": "integer", "minimum": 0},
            "id": {"description": "A UUID of version 7.", "type": "string", "format": "uuid"},
            "parentId": {"description": "The `id` of the record that it belongs to; `null` for a session.", "type": ["string", "null"], "format": "uuid"},
            "timestamp": {"description": "Milliseconds since 1970. `seq` has the order: a clock may go backwards.", "type": "integer", "minimum": 0},
            "type": {"type": "string"},
            "content": true,
            "metadata": {"type": "object"},
            "prev": {"description": "The first 16 digits of the SHA-256 of the line before; zeros in the first.", "type": "string", "pattern": hex(16)},
            "crc": {"description": "The CRC-32 of all bytes before `,\"crc\":`.", "type": "string", "pattern": hex(8)},
        },
        "required": ["seq", "id", "parentId", "timestamp", "type", "content", "metadata", "prev", "crc"],
        "additionalProperties": false,
    })
}

/// Each type of record with its form.
fn types(generator: &mut SchemaGenerator) -> Vec<(Kind, Value)> {
    let null = || json_schema!({"type": "null"});
    let call = stored_or(generator, CallContent::json_schema);
    let answer = stored_or(generator, answer);
    let result = generator.subschema_for::<ResultFields<'_>>();
    let session = generator.subschema_for::<SessionFields<'_>>();
    let turn = generator.subschema_for::<TurnFields>();
    let body = stored_or(
        generator,
        |_| json_schema!({"description": "The body of the API's response, as it came.", "type": "object"}),
    );
    let response = generator.subschema_for::<ResponseFields<'_>>();
    let asked = generator.subschema_for::<CallFields<'_>>();
    let start = generator.subschema_for::<StartFields<'_>>();
    let probe = generator.subschema_for::<ProbeFields<'_>>();
    let describe = generator.subschema_for::<DescribeFields<'_>>();
    let said = stored_or(generator, said);
    let resolve = generator.subschema_for::<ResolveFields<'_>>();
    let resolved = stored_or(generator, |_| json_schema!({"type": ["string", "null"]}));
    let recovered = generator.subschema_for::<Recovered>();
    let end = generator.subschema_for::<EndFields>();
    let forms = [
        (Kind::Session, null(), session),
        (Kind::Turn, null(), turn),
        (Kind::ModelResponse, body, response),
        (Kind::ToolCall, call, asked),
        (Kind::ToolStart, null(), start),
        (Kind::ToolResult, answer.clone(), result.clone()),
        (Kind::ToolSkipped, answer.clone(), result.clone()),
        (Kind::ToolInDoubt, answer, result),
        (Kind::ProbeStart, null(), probe.clone()),
        (Kind::ProbeEnd, null(), probe),
        (Kind::DescribeStart, null(), describe.clone()),
        (Kind::DescribeEnd, said, describe),
        (Kind::Resolve, resolved, resolve),
        (Kind::Recovered, null(), recovered),
        (Kind::SessionEnd, null(), end),
    ];
    let forms = forms.into_iter().map(|(kind, content, metadata)| {
        let form = form(&kind, &content, &metadata);
        (kind, form)
    });
    forms.collect()
}

fn form(kind: &Kind, content: &Schema, metadata: &Schema) -> Value {
    let mut form = json!({
        "title": kind.name(),
        "properties": {"type": {"const": kind.name()}, "content": content, "metadata": metadata},
    });
    match kind {
        Kind::Session => form["properties"]["parentId"] = json!({"type": "null"}),
        // A torn end belongs to no session.
        Kind::Recovered => {}
        _ => form["properties"]["parentId"] = json!({"type": "string"}),
    }
    form
}

/// A content that stands in a file where it is large.
fn stored_or(
    generator: &mut SchemaGenerator,
    content: fn(&mut SchemaGenerator) -> Schema,
) -> Schema {
    let stored = generator.subschema_for::<Stored>();
    let content = content(generator);
    json_schema!({"anyOf": [content, stored]})
}

/// What a tool said of itself.
fn said(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What holds of the tool from then on; `null` where it said nothing that can be used.",
        "type": ["object", "null"],
        "properties": {"description": {"type": "string"}, "input_schema": {"type": "object"}},
    })
}

/// What a model reads.
fn answer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What the model reads: a text, or an array of Anthropic content blocks.",
        "type": ["string", "array"],
        "items": {"type": "object"},
    })
}
