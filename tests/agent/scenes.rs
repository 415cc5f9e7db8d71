//! The tools.yaml of these tests, and runs of it.

use serde_json::{Value, json};

use crate::api::Api;
use crate::support::{Ran, Toolq, response};

/// The key of all agents, which nothing may show.
pub const CANARY: &str = "sk-canary-0123456789";

/// A file with an agent `expert` with these keys beside endpoint and model, and the tools `look`, `write` and `fail`.
pub fn tools(keys: &str) -> String {
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

/// toolq with that file, pointed at `api`.
pub fn toolq(api: &Api, keys: &str) -> Toolq {
    Toolq::new()
        .tools(&tools(keys))
        .env("BASE", &api.url)
        .env("KEY", CANARY)
}

/// One call of `expert`, answered.
pub fn ask(api: &Api, keys: &str) -> Ran {
    asked(toolq(api, keys))
}

pub fn asked(toolq: Toolq) -> Ran {
    toolq
        .stdin(response(&[("expert", json!({"query": "why?"}))]))
        .run(&["run", "--events", "events"])
}

/// The one result's text and whether it is an error.
pub fn result(ran: &Ran) -> (String, bool) {
    let texts = ran.texts();
    assert_eq!(texts.len(), 1);
    texts.into_iter().next().unwrap()
}

/// The types of the events, with what tells them apart.
pub fn events(ran: &Ran) -> Vec<Value> {
    let text = ran.file("events").unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
