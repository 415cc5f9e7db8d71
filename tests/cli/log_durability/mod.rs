//! Durability of the session log: toolq recovers from torn writes, refuses damaged or replaced logs, and starts no call
//! with side effects that it can't record.

mod failpoints;
mod full_disk;
mod invalid_logs;
mod log_tampering;
mod single_writer;
mod syscalls;

use std::path::Path;

use crate::support::{CliSandbox, model_response, parse_json_lines};
use serde_json::{Value, json};

/// `pay` has side effects, `look` is read-only. Both add a line to the file `ran`.
const TOOLS: &str = r#"
version: 1
tools:
  pay:
    description: Pay.
    input_schema: {type: object, properties: {to: {type: string}}}
    command: [sh, -c, "echo pay >> ran; echo paid"]
  look:
    description: Look.
    effect: read
    input_schema: {type: object, properties: {to: {type: string}}}
    command: [sh, -c, "echo look >> ran; echo seen"]
  sh:
    description: Run a script.
    input_schema: {type: object, properties: {script: {type: string}}, required: [script]}
    command: {argv: [sh, -c, 'eval "$SCRIPT"'], env: {SCRIPT: "{script}"}}
  blob:
    description: Print a large output.
    effect: idempotent
    max_output: 1MiB
    input_schema: {type: object, properties: {bytes: {type: integer}}, required: [bytes]}
    command: [sh, -c, 'head -c "$1" /dev/zero | tr "\0" x', sh, "{bytes}"]
"#;

fn toolq() -> CliSandbox {
    CliSandbox::new().tools(TOOLS)
}

/// The number of calls in [`three_calls`].
const THREE_CALL_COUNT: usize = 3;

/// Returns a response with calls of `pay`, `look` and `pay`.
fn three_calls() -> String {
    let empty = || json!({});
    model_response(&[("pay", empty()), ("look", empty()), ("pay", empty())])
}

/// Returns the complete records of a log, without a torn one at its end.
fn complete_records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    parse_json_lines(&text[..end])
}

/// Returns how often a tool ran.
fn count_runs(dir: &Path, tool: &str) -> usize {
    let ran = std::fs::read_to_string(dir.join("ran")).unwrap_or_default();
    ran.lines().filter(|line| *line == tool).count()
}
