//! Where a turn came from, as its record and `toolq log show` say.

use serde_json::{Value, json};

use crate::log::TOOLS;
use crate::support::{CliOutput, CliSandbox};

/// Answers `input`, named `file`, and returns what its `turn` records say of their origin.
fn origins(file: &str, input: &str) -> Vec<Value> {
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .file(file, input)
        .run(&["run", "-q", file])
        .assert_exit(0);
    turn_origins(&ran)
}

fn turn_origins(ran: &CliOutput) -> Vec<Value> {
    let records = ran.log_records().into_iter();
    let turns = records.filter(|record| record["type"] == "turn");
    turns
        .map(|turn| {
            let field = |name: &str| turn["metadata"][name].clone();
            json!([field("message_id"), field("model"), field("input")])
        })
        .collect()
}

fn say(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "say", "input": {"x": "hi"}})
}

fn anthropic_response(id: &str, model: &str) -> String {
    json!({"id": id, "type": "message", "role": "assistant", "model": model, "content": [say("a")], "stop_reason": "tool_use"})
        .to_string()
}

#[test]
fn a_turn_names_its_message_model_and_input() {
    let response = anthropic_response("msg_1", "claude-sonnet-4-5");
    assert_eq!(
        origins("response.json", &response),
        [json!(["msg_1", "claude-sonnet-4-5", "response.json"])]
    );
    let chat = json!({"id": "chatcmpl-1", "model": "gpt-1", "choices": [{"finish_reason": "tool_calls", "message": {
        "role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "say", "arguments": "{\"x\":\"hi\"}"}}]}}]});
    assert_eq!(
        origins("chat.json", &chat.to_string()),
        [json!(["chatcmpl-1", "gpt-1", "chat.json"])]
    );
    let responses = json!({"id": "resp_1", "object": "response", "model": "gpt-2", "status": "completed", "output": [
        {"type": "function_call", "call_id": "a", "name": "say", "arguments": "{\"x\":\"hi\"}"}]});
    assert_eq!(
        origins("responses.json", &responses.to_string()),
        [json!(["resp_1", "gpt-2", "responses.json"])]
    );
    let line = json!({"type": "assistant", "sessionId": "s", "uuid": "u", "message": {
        "id": "msg_2", "model": "claude", "role": "assistant", "content": [say("a")]}});
    assert_eq!(
        origins("session.jsonl", &line.to_string()),
        [json!(["msg_2", "claude", "session.jsonl"])]
    );
}

#[test]
fn each_turn_of_a_log_of_messages_has_its_own_message() {
    let lines = [
        anthropic_response("msg_1", "one"),
        anthropic_response("msg_2", "two"),
    ];
    assert_eq!(
        origins("lines.jsonl", &lines.join("\n")),
        [
            json!(["msg_1", "one", "lines.jsonl"]),
            json!(["msg_2", "two", "lines.jsonl"]),
        ]
    );
}

fn sse(events: &[Value]) -> String {
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    lines.collect()
}

/// A stream names its message before the first call, so its turn says the same as that of the whole message.
#[test]
fn the_turn_of_a_stream_names_its_message_and_model() {
    let message = |id: &str, model: &str| {
        sse(&[
            json!({"type": "message_start", "message": {"id": id, "model": model, "role": "assistant", "content": []}}),
            json!({"type": "content_block_start", "index": 0, "content_block": say("a")}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ])
    };
    let two = message("msg_1", "one") + &message("msg_2", "two");
    assert_eq!(
        origins("two.sse", &two),
        [
            json!(["msg_1", "one", "two.sse"]),
            json!(["msg_2", "two", "two.sse"])
        ]
    );
    let function = json!({"name": "say", "arguments": "{\"x\":\"hi\"}"});
    let chat = sse(&[
        json!({"id": "chatcmpl-1", "model": "gpt-1", "choices": [{"index": 0, "delta": {
            "role": "assistant", "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}]}}]}),
        json!({"id": "chatcmpl-1", "model": "gpt-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ]);
    let expected = [json!(["chatcmpl-1", "gpt-1", "chat.sse"])];
    assert_eq!(origins("chat.sse", &chat), expected);
    let item = json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "say", "arguments": "{\"x\":\"hi\"}"});
    let responses = sse(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt-2", "status": "in_progress"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "model": "gpt-2", "status": "completed", "output": [item]}}),
    ]);
    let expected = [json!(["resp_1", "gpt-2", "responses.sse"])];
    assert_eq!(origins("responses.sse", &responses), expected);
}

#[test]
fn a_turn_from_stdin_says_so_and_what_is_unknown_is_left_out() {
    let sandbox = CliSandbox::new().tools(TOOLS).stdin(say("a").to_string());
    let ran = sandbox.run(&["run", "-q"]).assert_exit(0);
    assert_eq!(turn_origins(&ran), [json!([null, null, "-"])]);
    let records = ran.log_records();
    let turn = records.iter().find(|record| record["type"] == "turn");
    assert_eq!(turn.unwrap()["metadata"], json!({"turn": 0, "input": "-"}));
}

#[test]
fn log_show_says_where_a_turn_came_from() {
    let script =
        "\"$TOOLQ\" run -q --log log.jsonl response.json > out; \"$TOOLQ\" log show log.jsonl";
    let shown = CliSandbox::new()
        .tools(TOOLS)
        .file("response.json", anthropic_response("msg_\u{1b}1", "claude"))
        .run_shell(script)
        .assert_exit(0);
    let heading = "\nturn 0: msg_\\x1b1, claude, from response.json\n";
    assert!(shown.stdout.contains(heading), "{}", shown.stdout);
}
