//! Damage to the session log, seen from outside: what was cut, flipped, replaced or full is refused or recovered from,
//! and nothing runs that would not be remembered.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

#[path = "../support/mod.rs"]
mod support;

mod disks;
mod failpoints;
mod files;
mod meddling;
mod starts;
mod traced;

use std::path::Path;

use serde_json::{Value, json};
use support::{Toolq, json_lines, response};

/// `pay` does something to the world, `look` does not; both say so in the file `ran`.
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
    description: Do what is said.
    input_schema: {type: object, properties: {script: {type: string}}, required: [script]}
    command: {argv: [sh, -c, 'eval "$SCRIPT"'], env: {SCRIPT: "{script}"}}
  blob:
    description: Print much.
    effect: idempotent
    max_output: 1MiB
    input_schema: {type: object, properties: {bytes: {type: integer}}, required: [bytes]}
    command: [sh, -c, 'head -c "$1" /dev/zero | tr "\0" x', sh, "{bytes}"]
"#;

fn toolq() -> Toolq {
    Toolq::new().tools(TOOLS)
}

/// How many calls [`few`] has.
const FEW: usize = 3;

/// A pay, a look, a pay.
fn few() -> String {
    let none = || json!({});
    response(&[("pay", none()), ("look", none()), ("pay", none())])
}

/// The whole lines of a log; a torn end may follow them.
fn whole_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    json_lines(&text[..end])
}

/// How often the tool ran.
fn ran(folder: &Path, tool: &str) -> usize {
    let ran = std::fs::read_to_string(folder.join("ran")).unwrap_or_default();
    ran.lines().filter(|line| *line == tool).count()
}
