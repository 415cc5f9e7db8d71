//! An agent with a few tools, and ways to run it.

use serde_json::{Value, json};

use crate::support::scripted_api::ScriptedApi;
use crate::support::{CliOutput, CliSandbox, model_response};

/// The API key of all agents, which must not appear in any output.
pub const CANARY: &str = "sk-canary-0123456789";

/// Returns a file with an agent `expert`, which gets these keys in addition to endpoint and model, and the tools `look`,
/// `write` and `fail`.
pub fn expert_tools(keys: &str) -> String {
    format!(
        r#"version: 1
tools:
  expert:
    description: Knows.
    input_schema: {{type: object, properties: {{query: {{type: string}}}}, required: [query], additionalProperties: false}}
    effect: write
    agent:
      endpoint: "${{BASE}}"
      api_key: "${{KEY}}"
      model: model-1
{keys}
  look:
    description: Looks.
    input_schema: {{type: object, properties: {{at: {{type: string}}}}, required: [at], additionalProperties: false}}
    effect: read
    command: [echo, "seen {{at}}"]
  write:
    description: Writes.
    input_schema: {{type: object, properties: {{what: {{type: string}}}}, required: [what], additionalProperties: false}}
    command: [sh, -c, 'echo "$1" >> written', --, "{{what}}"]
  fail:
    description: Fails.
    input_schema: {{type: object, additionalProperties: false}}
    effect: read
    command: [sh, -c, "exit 3"]
"#
    )
}

/// Returns a sandbox with that file, whose agent uses `api`.
pub fn toolq(api: &ScriptedApi, keys: &str) -> CliSandbox {
    CliSandbox::new()
        .tools(&expert_tools(keys))
        .env("BASE", &api.url)
        .env("KEY", CANARY)
}

/// Runs one call of `expert`.
pub fn run_expert(api: &ScriptedApi, keys: &str) -> CliOutput {
    run_expert_in(toolq(api, keys))
}

/// Runs one call of `expert` in a prepared sandbox.
pub fn run_expert_in(toolq: CliSandbox) -> CliOutput {
    toolq
        .stdin(model_response(&[("expert", json!({"query": "why?"}))]))
        .run(&["run", "--events", "events"])
}

/// Returns the text of the only result, and whether it is an error.
pub fn single_result(ran: &CliOutput) -> (String, bool) {
    let texts = ran.result_texts();
    assert_eq!(texts.len(), 1);
    texts.into_iter().next().unwrap()
}

/// Returns the events of the run.
pub fn read_events(ran: &CliOutput) -> Vec<Value> {
    let text = ran.file("events").unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns how the calls ended: name, id and status, in the order of the log.
pub fn call_endings(ran: &CliOutput) -> Vec<String> {
    let records = ran.log_records();
    let ends = records.iter().map(|record| &record["metadata"]);
    ends.filter(|end| !end["status"].is_null())
        .map(|end| {
            let field = |name: &str| end[name].as_str().unwrap();
            format!(
                "{} {} {}",
                field("tool_name"),
                field("tool_use_id"),
                field("status")
            )
        })
        .collect()
}
