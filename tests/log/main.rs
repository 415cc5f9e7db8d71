//! `toolq log`: what it tells of logs that runs wrote, and of logs that none would write.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

#[path = "../agent/api.rs"]
mod api;
mod cost;
mod follow;
mod forge;
mod prune;
mod schema;
mod show;
mod stats;
#[path = "../support/mod.rs"]
mod support;
mod verify;

use serde_json::json;
use support::{Toolq, response};

const TOOLS: &str = r#"
rules: [{tools: "*", concurrency_safe: true}]
tools:
  say: {input_schema: {type: object, properties: {x: {type: string}}, required: [x]}, command: [printf, "%s", "{x}"]}
  fail: {input_schema: {type: object}, on_failure: stop, concurrency_safe: false, command: [sh, -c, "echo no >&2; exit 3"]}
"#;

/// A run of two calls of `say`, one that fails, and one that is not executed; and before them an unknown tool.
fn ran() -> Toolq {
    Toolq::new().tools(TOOLS).stdin(response(&[
        ("nobody", json!({})),
        ("say", json!({"x": "one\ntwo"})),
        ("say", json!({"x": "three"})),
        ("fail", json!({})),
        ("say", json!({"x": "never"})),
    ]))
}
