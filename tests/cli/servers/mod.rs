//! Tools of MCP servers, with a server that is a shell script.

mod calls;
mod declarations;
mod failures;
mod lifetime;
mod reports;

use std::fs;
use std::path::Path;

use crate::support::CliSandbox;
use serde_json::{Value, json};

/// A server that notes its pid, its starts, every call and its end. What a call does depends on the tool's name.
const SERVER: &str = r#"#!/bin/sh
echo "$$" >> starts
echo "listening on stdio"
trap 'echo term >> ends; exit 0' TERM
while read -r line; do
  rest=${line#*'"id":'}
  id=${rest%%,*}
  case $line in
  *'"method":"server/discover"'*)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}\r\n' "$id" ;;
  *'"method":"initialize"'*)
    printf '\n{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}}\n' "$id" ;;
  *'"method":"notifications/cancelled"'*) echo canceled >> calls ;;
  *'"method":"tools/call"'*)
    printf '%s\n' "$line" >> calls
    case $line in
    *'"name":"hang"'*) ;;
    *'"name":"leave"'*) sleep 600 & echo "$!" >> starts ;;
    *'"name":"die"'*) echo "out of cheese" >&2; exit 3 ;;
    *'"name":"fail"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"no such note"}]}}\n' "$id" ;;
    *'"name":"refuse"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}\n' "$id" ;;
    *'"name":"picture"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}}\n' "$id" ;;
    *'"name":"count"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n": 12345678901234567890.10}}}\n' "$id" ;;
    *)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}\n' "$id" ;;
    esac ;;
  esac
done
echo eof >> ends
"#;

const TOOLS: &str = r#"
version: 1
servers:
  notes:
    command: {argv: [./server], env: {SERVER_TOKEN: "${SERVER_TOKEN:-}"}}
tools:
  read: &read
    input_schema: {type: object}
    effect: read
    timeout: 20s
    mcp: {server: notes}
  get_note:
    input_schema: {type: object, properties: {name: {type: string}, n: {}}, required: [name]}
    effect: read
    mcp: {server: notes, tool: read, arguments: {path: "notes/{name}.md", n: "{n?}", deep: [true, {x: 1.50}]}}
  fail: *read
  refuse: *read
  hang: {input_schema: {type: object}, effect: read, timeout: 300ms, mcp: {server: notes}}
  pay: {input_schema: {type: object}, timeout: 300ms, mcp: {server: notes, tool: hang}}
  die: *read
  leave: {input_schema: {type: object}, effect: read, timeout: 300s, mcp: {server: notes}}
  picture: {input_schema: {type: object}, effect: read, output: content, mcp: {server: notes}}
  count: {input_schema: {type: object}, effect: read, output: json, mcp: {server: notes}}
"#;

fn sandbox(calls: &[(&str, Value)]) -> CliSandbox {
    let blocks = calls.iter().enumerate().map(|(index, (tool, input))| {
        json!({"type": "tool_use", "id": format!("c{index}"), "name": tool, "input": input})
    });
    let message = json!({"role": "assistant", "content": blocks.collect::<Value>()});
    CliSandbox::new()
        .tools(TOOLS)
        .program("server", SERVER)
        .stdin(message.to_string())
}

/// Returns the lines of a file that the server writes.
fn lines(dir: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
