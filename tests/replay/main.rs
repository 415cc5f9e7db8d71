//! `toolq replay`, from outside.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::format_push_string,
    reason = "a test that can't go on fails"
)]

#[path = "../support/mod.rs"]
mod support;

mod execution;
mod forms;
mod paths;
mod recorded;
mod reports;
mod update;
mod verdicts;

use serde_json::{Value, json};
use support::{Ran, Toolq};

/// Tools that read, one that writes and leaves a trace, and one without a backing.
pub const TOOLS: &str = r#"version: 1
tools:
  read:
    description: Read a file.
    input_schema: {type: object, properties: {path: {type: string}}, required: [path], additionalProperties: false}
    effect: read
    command: [cat, --, "{path}"]
  write:
    description: Leave a trace.
    input_schema: {type: object, properties: {text: {type: string, minLength: 1}}, required: [text]}
    command: {argv: [sh, -c, 'cat >> trace; echo written'], stdin: "{text}"}
  ask:
    description: Only recorded.
    input_schema: {type: object}
    effect: read
"#;

/// A turn of Anthropic messages: what was asked, and what was answered where an answer is given.
pub fn turn(calls: &[(&str, &str, Value, Option<Value>)]) -> String {
    let asked: Vec<Value> = calls
        .iter()
        .map(|(id, name, input, _)| json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        .collect();
    let answered: Vec<Value> = calls
        .iter()
        .filter_map(|(id, _, _, answer)| {
            let mut result = json!({"type": "tool_result", "tool_use_id": id});
            result
                .as_object_mut()
                .unwrap()
                .extend(answer.clone()?.as_object().unwrap().clone());
            Some(result)
        })
        .collect();
    let mut lines = format!("{}\n", json!({"role": "assistant", "content": asked}));
    if !answered.is_empty() {
        lines += &format!("{}\n", json!({"role": "user", "content": answered}));
    }
    lines
}

/// A result with this content.
pub fn says(content: impl Into<Value>) -> Option<Value> {
    Some(json!({"content": content.into()}))
}

/// The same as an error.
pub fn fails(content: &str) -> Option<Value> {
    Some(json!({"content": content, "is_error": true}))
}

/// Replays `recording` with the tools and files of every test.
pub fn replay(recording: &str, arguments: &[&str]) -> Ran {
    let arguments = [&["replay", "r.jsonl", "--json", "-"], arguments].concat();
    scene().file("r.jsonl", recording).run(&arguments)
}

/// The tools and files of every test.
pub fn scene() -> Toolq {
    Toolq::new()
        .tools(TOOLS)
        .file("poem", "so much depends\nupon\n")
        .file("data", r#"{"took_ms": 3, "rows": [{"id": 1, "n": 1.50}]}"#)
}

/// What differs: kind and path of each row.
pub fn differ(ran: &Ran) -> Vec<(String, String)> {
    let report = ran.json();
    let rows = report["differ"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("kind"), text("path"))
        })
        .collect()
}

/// The counts of a report: calls, executed, served, matched.
pub fn counts(ran: &Ran) -> [u64; 4] {
    let report = ran.json();
    ["calls", "executed", "served", "matched"].map(|key| report[key].as_u64().unwrap())
}
