//! `toolq replay`.

mod comparison;
mod copy_replay;
mod dialects;
mod execution;
mod on_copy;
mod recording_paths;
mod reports;
mod stale;
mod update;

use crate::support::{CliOutput, CliSandbox};
use serde_json::{Value, json};

/// A read-only tool, one that writes to the file `trace`, and one without a backing.
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

/// Returns a turn as Anthropic messages: the calls, and the results of those that have one.
pub fn recorded_turn(calls: &[(&str, &str, Value, Option<Value>)]) -> String {
    let tool_uses: Vec<Value> = calls
        .iter()
        .map(|(id, name, input, _)| json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        .collect();
    let tool_results: Vec<Value> = calls
        .iter()
        .filter_map(|(id, _, _, recorded)| {
            let mut result = json!({"type": "tool_result", "tool_use_id": id});
            result
                .as_object_mut()
                .unwrap()
                .extend(recorded.clone()?.as_object().unwrap().clone());
            Some(result)
        })
        .collect();
    let mut lines = format!("{}\n", json!({"role": "assistant", "content": tool_uses}));
    if !tool_results.is_empty() {
        lines += &format!("{}\n", json!({"role": "user", "content": tool_results}));
    }
    lines
}

/// Returns a result with this content.
#[expect(clippy::unnecessary_wraps, reason = "a call may lack its result")]
pub fn ok_result(content: impl Into<Value>) -> Option<Value> {
    Some(json!({"content": content.into()}))
}

/// Returns an error result with this content.
#[expect(clippy::unnecessary_wraps, reason = "a call may lack its result")]
pub fn error_result(content: &str) -> Option<Value> {
    Some(json!({"content": content, "is_error": true}))
}

/// Replays `recording` in the [`replay_sandbox`].
pub fn replay(recording: &str, arguments: &[&str]) -> CliOutput {
    let arguments = [&["replay", "r.jsonl", "--json", "-"], arguments].concat();
    replay_sandbox().file("r.jsonl", recording).run(&arguments)
}

/// Returns a sandbox with the tools and files that all tests use.
pub fn replay_sandbox() -> CliSandbox {
    CliSandbox::new()
        .tools(TOOLS)
        .file("poem", "so much depends\nupon\n")
        .file("blank", "")
        .file("data", r#"{"took_ms": 3, "rows": [{"id": 1, "n": 1.50}]}"#)
}

/// Returns the kind and path of each difference.
pub fn differences(ran: &CliOutput) -> Vec<(String, String)> {
    let report = ran.json();
    let rows = report["differ"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("kind"), text("path"))
        })
        .collect()
}

/// Returns the counts of a report: calls, executed, served, matched.
pub fn report_counts(ran: &CliOutput) -> [u64; 4] {
    let report = ran.json();
    ["calls", "executed", "served", "matched"].map(|key| report[key].as_u64().unwrap())
}
