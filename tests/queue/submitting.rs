//! What `submit` puts into a queue, and what it doesn't.

use serde_json::{Value, json};

use crate::queue_sandbox::{QUEUE, QueueSandbox};
use crate::support::parse_json_lines;

#[test]
fn what_is_submitted_twice_is_done_once() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a"), ("write", "b")]);
    let first = sandbox.submit("in.jsonl");
    assert!(
        first.stderr.contains("2 turns submitted"),
        "{}",
        first.stderr
    );
    let second = sandbox.submit("in.jsonl");
    let known = "0 turns submitted; the queue had 2 turns already (`--new` submits again)";
    assert!(second.stderr.contains(known), "{}", second.stderr);
    sandbox
        .start_worker(&["--until-empty"])
        .wait()
        .assert_exit(0);
    assert_eq!(sandbox.effects(), ["a", "b"]);
    // Also once they are answered and collected.
    sandbox.collect().assert_exit(0);
    assert!(sandbox.submit("in.jsonl").stderr.contains("0 turns"));
    sandbox
        .start_worker(&["--until-empty"])
        .wait()
        .assert_exit(0);
    assert_eq!(sandbox.effects(), ["a", "b"]);
}

#[test]
fn with_new_it_is_done_again() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    sandbox
        .run(&["queue", "submit", QUEUE, "--new", "in.jsonl"])
        .assert_exit(0);
    sandbox
        .start_worker(&["--until-empty"])
        .wait()
        .assert_exit(0);
    assert_eq!(sandbox.effects(), ["a", "a"]);
    assert_eq!(sandbox.collect().texts(), ["wrote a", "wrote a"]);
}

#[test]
fn each_turn_is_answered_in_its_own_dialect() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let arguments = json!({"text": "a"}).to_string();
    let chat = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "write", "arguments": arguments}}]}}]});
    sandbox.write("chat.json", &chat.to_string());
    let block =
        json!({"type": "tool_use", "id": "toolu_1", "name": "write", "input": {"text": "b"}});
    sandbox.write("block.json", &block.to_string());
    sandbox.submit("chat.json");
    sandbox.submit("block.json");
    sandbox
        .start_worker(&["--until-empty"])
        .wait()
        .assert_exit(0);
    let answers = parse_json_lines(&sandbox.collect().assert_exit(0).stdout);
    let chat_answer = match &answers[0] {
        Value::Array(messages) => &messages[0],
        message => message,
    };
    assert_eq!(chat_answer["tool_call_id"], "call_1", "{answers:?}");
    assert_eq!(answers[1]["tool_use_id"], "toolu_1", "{answers:?}");
}

#[test]
fn turns_that_have_their_results_are_left_out() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let call =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "write", "input": {"text": id}});
    let result = json!({"type": "tool_result", "tool_use_id": "old", "content": "done"});
    let transcript = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call("old")]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [call("open")]},
    ]);
    sandbox.write("transcript.json", &transcript.to_string());
    let output = sandbox.submit("transcript.json");
    assert!(
        output.stderr.contains("1 turn submitted"),
        "{}",
        output.stderr
    );
    sandbox
        .start_worker(&["--until-empty"])
        .wait()
        .assert_exit(0);
    assert_eq!(sandbox.effects(), ["open"]);
}

#[test]
fn a_server_that_is_not_there_is_reported() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    let url = "nats://user:secret@127.0.0.1:9";
    let output = sandbox.run(&["queue", "submit", QUEUE, "--nats", url, "in.jsonl"]);
    assert_ne!(output.code, Some(0));
    assert!(
        output
            .stderr
            .contains("NATS can't be reached at nats://127.0.0.1:9"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
}
