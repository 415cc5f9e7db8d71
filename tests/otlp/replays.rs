//! `replay --otlp`: the calls that run again.

use serde_json::json;

use crate::receiver::OtlpReceiver;
use crate::support::CliSandbox;

const TOOLS: &str = r"
version: 1
tools:
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  save: {input_schema: {type: object}, command: [echo, saved]}
";

/// Calls that are served from the recording don't run, and have no span.
#[test]
fn a_replay_has_spans_of_the_calls_that_run() {
    let receiver = OtlpReceiver::new();
    let call =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let result =
        |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let recording = format!(
        "{}\n{}\n",
        json!({"role": "assistant", "content": [call("toolu_1", "look"), call("toolu_2", "save")]}),
        json!({"role": "user", "content": [result("toolu_1", "seen"), result("toolu_2", "saved")]}),
    );
    let sandbox = CliSandbox::new()
        .tools(TOOLS)
        .file("a.jsonl", &recording)
        .file("b.jsonl", &recording);
    sandbox
        .run(&["replay", "a.jsonl", "b.jsonl", "--otlp", &receiver.url])
        .assert_exit(0);
    let spans = receiver.spans();
    let calls: Vec<_> = spans
        .iter()
        .filter(|span| span.name == "execute_tool look")
        .collect();
    assert_eq!((spans.len(), calls.len()), (3, 2), "{spans:?}");
    assert_ne!(
        calls[0].span_id, calls[1].span_id,
        "each recording has its own"
    );
    let root = spans.iter().find(|span| span.name == "toolq").unwrap();
    assert!(calls.iter().all(|call| call.parent_id == root.span_id));
}
