//! Runs the real binary with hostile values in every position that takes an input value. Each value arrives verbatim and
//! stays in its position. One run makes hundreds of calls.

mod arguments;
mod commands;
mod corpus;
mod declarations;
mod declared_files;
mod documented_requests;
mod documents;
mod recording_listener;
mod requests;
mod results;
mod searches;

use crate::support::{CliOutput, CliSandbox};
use serde_json::{Value, json};

/// Runs one call of `tool` per value. Returns the run and each result's text with whether it is an error.
fn run_each(toolq: CliSandbox, tool: &str, values: &[String]) -> (CliOutput, Vec<(String, bool)>) {
    let calls: Vec<(&str, Value)> = values
        .iter()
        .map(|value| (tool, json!({"x": value})))
        .collect();
    let ran = toolq
        .stdin(crate::support::model_response(&calls))
        .run(&["run", "--events", "events.ndjson"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts.len(), values.len());
    assert!(
        !ran.dir.path().join("canary").exists(),
        "a value was executed"
    );
    (ran, texts)
}
