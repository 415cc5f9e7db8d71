//! An agent whose model streams, and what became of its calls.

use std::path::Path;

use serde_json::{Value, json};

use crate::api::{Act, Api, Step};
use crate::scenes::CANARY;
use crate::support::{Ran, Toolq, response};
use crate::vendors::event;

/// An agent `expert` with these keys, and its tools: `look`, `renew` and `change` make a file of their name and input; `wait`
/// does, too, and ends when there is `NAME.go`.
const TOOLS: &str = r#"version: 1
tools:
  expert:
    description: Knows.
    input_schema: {type: object, properties: {query: {type: string}}, required: [query]}
    retry: {times: 3, on: [rate_limited, unavailable], backoff: 1ms}
    agent:
      endpoint: "${BASE}"
      api_key: "${KEY}"
      model: model-1
      stream: true
      tools: [look, renew, change, wait]
  look:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name], additionalProperties: false}
    effect: read
    command: {argv: [sh, -c, 'echo "saw $1"; : > "look.$1"', --, "{name}"], stdin: none}
  renew:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
    effect: idempotent
    command: {argv: [sh, -c, 'echo "renewed $1"; : > "renew.$1"', --, "{name}"], stdin: none}
  change:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
    command: {argv: [sh, -c, 'echo "changed $1"; : > "change.$1"', --, "{name}"], stdin: none}
  wait:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
    effect: read
    command: {argv: [sh, -c, ': > "wait.$1"; until [ -e "$1.go" ]; do sleep 0.02; done; echo "waited for $1"', --, "{name}"], stdin: none}
"#;

/// The agent with `keys`, and an API that does what `acts` says, given the folder in which the calls run.
pub fn scene(keys: &str, acts: impl FnOnce(&Path) -> Vec<Act>) -> (Toolq, Api) {
    let keyed = format!("      model: model-1\n{keys}");
    let toolq = Toolq::new().tools(&TOOLS.replace("      model: model-1\n", &keyed));
    let api = Api::new(&acts(toolq.path()));
    let toolq = toolq
        .env("BASE", &api.url)
        .env("KEY", CANARY)
        .stdin(response(&[("expert", json!({"query": "why?"}))]));
    (toolq, api)
}

pub fn say(events: impl Into<String>) -> Step {
    Step::Say(events.into())
}

/// The text of an Anthropic message, behind its calls before `index`.
pub fn said(index: usize, text: &str) -> String {
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": text});
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
        + &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

/// How the calls ended: name, id and status, in the order of the log.
pub fn ends(ran: &Ran) -> Vec<String> {
    ends_of(&ran.log())
}

pub fn ends_of(log: &[Value]) -> Vec<String> {
    let ends = log
        .iter()
        .filter(|record| !record["metadata"]["status"].is_null());
    ends.map(|record| {
        let field = |name: &str| record["metadata"][name].as_str().unwrap();
        format!(
            "{} {} {}",
            field("tool_name"),
            field("tool_use_id"),
            field("status")
        )
    })
    .collect()
}

/// What a model is told of its calls: the first line of each, `!` before an error.
pub fn told(api: &Api, request: usize) -> Vec<String> {
    let messages = api.messages(request);
    let results = messages.last().unwrap()["content"].as_array().unwrap();
    let words = |result: &Value| {
        let mark = if result["is_error"] == true { "!" } else { "" };
        let text = result["content"].as_str().unwrap();
        format!("{mark}{}", text.lines().next().unwrap_or_default())
    };
    results.iter().map(words).collect()
}

/// What was recorded of an agent's answer and its calls, in this order.
pub fn recorded(ran: &Ran) -> Vec<String> {
    let log = ran.log();
    let records = log.iter().filter_map(|record| {
        let kind = record["type"].as_str()?;
        let id = record["metadata"]["tool_use_id"].as_str()?;
        let known = matches!(kind, "tool_start" | "tool_result" | "model_response");
        (known && (id != "toolu_0" || kind == "model_response")).then(|| format!("{kind} {id}"))
    });
    records.collect()
}

/// An answer of chat completions that only says something.
pub fn chat_text(text: &str) -> String {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    chunk(json!({"content": text}), None) + &chunk(json!({}), Some("stop")) + "data: [DONE]\n\n"
}
