//! `toolq serve --http` as clients see it: raw HTTP/1.1 on a socket, in both eras of the protocol.

mod access;
mod approvals;
mod cancellation;
mod documentation;
mod http_client;
mod http_server;
mod legacy_era;
mod limits;
mod modern_era;
mod read_output;
mod resources;
mod shutdown;
mod together;

use crate::support::waiting::{PATIENCE, is_running, wait_until, wait_until_gone};
use serde_json::{Value, json};

const TOOLS: &str = r#"
version: 1
secrets: [TOKEN]
tools:
  echo:
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    effect: read
    command: [printf, "%s", "{text}"]
  regional:
    input_schema:
      type: object
      properties:
        region: {type: string, x-mcp-header: Region}
        shard: {type: integer, x-mcp-header: Shard}
    effect: read
    command: [echo, "served"]
  # Waits for another call of it.
  meet:
    input_schema: {type: object, properties: {me: {type: string}, other: {type: string}}}
    effect: read
    timeout: 100s
    command: [sh, -c, ': > "$1"; until [ -e "$2" ]; do sleep 0.01; done; echo met', --, "{me}", "{other}"]
  # Ends when a file appears.
  wait_for:
    input_schema: {type: object, properties: {file: {type: string}}, required: [file]}
    effect: read
    timeout: 100s
    command: [sh, -c, 'echo $$ >> pids; until [ -e "$1" ]; do sleep 0.01; done; echo "found $1"', --, "{file}"]
  pay:
    input_schema: {type: object, properties: {file: {type: string}}, required: [file]}
    effect: write
    timeout: 100s
    command: [sh, -c, 'echo $$ >> pids; until [ -e "$1" ]; do sleep 0.01; done; echo "paid $1"', --, "{file}"]
  work:
    input_schema: {type: object}
    effect: read
    timeout: 100s
    command: [sh, -c, 'echo "{\"tip\":\"half\",\"progress\":0.5}" >&3; until [ -e go ]; do sleep 0.01; done; echo done']
"#;

/// Returns a request of the modern era.
fn modern(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    for (key, value) in meta.as_object().unwrap() {
        params["_meta"][key] = value.clone();
    }
    legacy(id, method, &params)
}

/// Returns a request of the legacy era.
fn legacy(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

#[track_caller]
fn text_of(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}
