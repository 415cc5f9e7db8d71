//! `toolq log`, on logs that runs wrote and on logs that no run would write.

mod cost;
mod follow;
mod list;
mod log_builder;
mod narrow_terminal;
mod prune;
mod schema;
mod show;
mod stats;
mod timeline;
mod trace;
mod turn_origin;
mod verify;

use crate::support::{CliSandbox, model_response};
use serde_json::json;

const TOOLS: &str = r#"
rules: [{tools: "*", concurrency_safe: true}]
tools:
  say: {input_schema: {type: object, properties: {x: {type: string}}, required: [x]}, command: [printf, "%s", "{x}"]}
  fail: {input_schema: {type: object}, on_failure: stop, concurrency_safe: false, command: [sh, -c, "echo no >&2; exit 3"]}
"#;

/// A run with a call of an unknown tool, two calls that succeed, one that fails, and one that isn't executed.
fn sandbox_with_five_calls() -> CliSandbox {
    CliSandbox::new().tools(TOOLS).stdin(model_response(&[
        ("missing", json!({})),
        ("say", json!({"x": "one\ntwo"})),
        ("say", json!({"x": "three"})),
        ("fail", json!({})),
        ("say", json!({"x": "never"})),
    ]))
}
