//! Tools of MCP servers over streamable HTTP, in both eras of the protocol.

mod failures;
mod resumption;
mod sessions;
mod tools;

use crate::support::scripted_server::{ScriptedServer, TOOLS};
use crate::support::{CliSandbox, model_response};
use serde_json::{Value, json};

const TOKEN: &str = "hunter-22-hunter";

/// Returns a sandbox with these calls. Each tool of the server exists twice: as a `read`, and as a `write` named `pay_…`.
fn sandbox(server: &ScriptedServer, calls: &[(&str, Value)]) -> CliSandbox {
    sandbox_with(server, "", calls)
}

fn sandbox_with(server: &ScriptedServer, keys: &str, calls: &[(&str, Value)]) -> CliSandbox {
    let mut tools = format!(
        "version: 1\nservers:\n  s:\n    url: \"{}\"\n    headers: {{Authorization: \"Bearer ${{TOKEN}}\"}}\n{keys}tools:\n",
        server.url
    );
    for name in TOOLS.into_iter().chain(["regional"]) {
        let timeout = if name == "hang" { "500ms" } else { "120s" };
        let keys = format!(
            "input_schema: {{type: object}}, timeout: {timeout}, on_doubt: continue, mcp: {{server: s, tool: {name}}}"
        );
        let entries = format!("  {name}: {{effect: read, {keys}}}\n  pay_{name}: {{{keys}}}\n");
        tools.push_str(&entries);
    }
    CliSandbox::new()
        .tools(&tools)
        .env("TOKEN", TOKEN)
        .stdin(model_response(calls))
}

fn no_input(tools: &[&'static str]) -> Vec<(&'static str, Value)> {
    tools.iter().map(|tool| (*tool, json!({}))).collect()
}
