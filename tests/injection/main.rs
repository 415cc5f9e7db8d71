//! Hostile values through the real program into every place where a value can stand. Each arrives as it was, in its place,
//! and nothing else arrives. One run makes hundreds of calls.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod commands;
mod corpus;
mod listener;
mod requests;
mod results;
#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value, json};
use support::{Ran, Toolq};

/// Runs a call of `tool` for each value, and gives the answers: the text, and whether it is an error.
fn run_each(toolq: Toolq, tool: &str, values: &[String]) -> (Ran, Vec<(String, bool)>) {
    let calls: Vec<(&str, Value)> = values
        .iter()
        .map(|value| (tool, json!({"x": value})))
        .collect();
    let ran = toolq
        .stdin(support::response(&calls))
        .run(&["run", "--events", "events.ndjson"])
        .exits(0);
    let texts = ran.texts();
    assert_eq!(texts.len(), values.len());
    assert!(!ran.dir.path().join("canary").exists(), "a value was run");
    (ran, texts)
}
