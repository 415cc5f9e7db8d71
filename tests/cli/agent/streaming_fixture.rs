//! An agent whose model streams, and ways to see what happened to its calls.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::expert_fixture::CANARY;
use crate::support::scripted_api::{ApiBehavior, ScriptedApi, StreamStep};
use crate::support::vendor_messages::sse_event;
use crate::support::{CliOutput, CliSandbox, model_response};

/// An agent `expert` and its tools. Each tool creates a file named after itself and its input, such as `look.1`. `wait` then
/// waits for the file `NAME.go`.
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

/// Returns the agent with `keys`, and its API. `behaviors` gets the directory in which the calls run.
pub fn streaming_agent(
    keys: &str,
    behaviors: impl FnOnce(&Path) -> Vec<ApiBehavior>,
) -> (CliSandbox, ScriptedApi) {
    let keyed = format!("      model: model-1\n{keys}");
    let toolq = CliSandbox::new().tools(&TOOLS.replace("      model: model-1\n", &keyed));
    let api = ScriptedApi::new(&behaviors(toolq.path()));
    let toolq = toolq
        .env("BASE", &api.url)
        .env("KEY", CANARY)
        .stdin(model_response(&[("expert", json!({"query": "why?"}))]));
    (toolq, api)
}

/// Returns a step that sends these events.
pub fn send_step(events: impl Into<String>) -> StreamStep {
    StreamStep::Send(events.into())
}

/// Returns the events of a text block in an Anthropic message, at `index`. The block isn't closed.
pub fn text_block_events(index: usize, text: &str) -> String {
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": text});
    sse_event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
        + &sse_event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

/// Returns how the calls ended: name, id and status, in the order of the log.
pub fn call_endings(ran: &CliOutput) -> Vec<String> {
    call_endings_in(&ran.log_records())
}

/// Like [`call_endings`], for the records of a log.
pub fn call_endings_in(log: &[Value]) -> Vec<String> {
    let endings = log
        .iter()
        .filter(|record| !record["metadata"]["status"].is_null());
    endings
        .map(|record| {
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

/// Returns the results in a request: the first line of each, with `!` in front of errors.
pub fn results_sent_to_model(api: &ScriptedApi, request: usize) -> Vec<String> {
    let messages = api.messages(request);
    let results = messages.last().unwrap()["content"].as_array().unwrap();
    let first_line = |result: &Value| {
        let mark = if result["is_error"] == true { "!" } else { "" };
        let text = result["content"].as_str().unwrap();
        format!("{mark}{}", text.lines().next().unwrap_or_default())
    };
    results.iter().map(first_line).collect()
}

/// Returns the records of an agent's responses, and of its calls' starts and results, in order.
pub fn agent_record_order(ran: &CliOutput) -> Vec<String> {
    let log = ran.log_records();
    let records = log.iter().filter_map(|record| {
        let kind = record["type"].as_str()?;
        let id = record["metadata"]["tool_use_id"].as_str()?;
        let known = matches!(kind, "tool_start" | "tool_result" | "model_response");
        (known && (id != "toolu_0" || kind == "model_response")).then(|| format!("{kind} {id}"))
    });
    records.collect()
}

/// Returns a chat completions stream that only has a text.
pub fn chat_text_stream(text: &str) -> String {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    chunk(json!({"content": text}), None) + &chunk(json!({}), Some("stop")) + "data: [DONE]\n\n"
}
