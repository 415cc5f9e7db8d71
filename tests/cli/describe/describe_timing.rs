//! Which tools are described, and when.

use serde_json::{Value, json};

use super::{PRINT_DESCRIPTION, calls_input, describe_tools_file, toolq};
use crate::support::model_response;

/// Returns a Messages API stream that calls these tools.
fn tool_use_stream(calls: &[(&str, Value)]) -> String {
    let event = |event: Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    };
    let mut text = event(
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}),
    );
    for (index, (name, input)) in calls.iter().enumerate() {
        let block =
            json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {}});
        text +=
            &event(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        text += &event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        text += &event(json!({"type": "content_block_stop", "index": index}));
    }
    text += &event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    text + &event(json!({"type": "message_stop"}))
}

#[test]
fn uncalled_tools_are_not_described() {
    let other = model_response(&[("other", json!({}))]);
    for arguments in [&["run"][..], &["plan", "--describe"]] {
        let ran = toolq(PRINT_DESCRIPTION)
            .stdin(&other)
            .run(arguments)
            .assert_exit(0);
        assert_eq!(ran.file("described"), None);
        assert!(!ran.stderr.contains("say"), "{}", ran.stderr);
    }
    let log = toolq(PRINT_DESCRIPTION)
        .stdin(&other)
        .run(&["run"])
        .assert_exit(0)
        .log_records();
    assert!(log.iter().all(|record| record["type"] != "describe_start"));
}

/// A tool is described when the turn of its first call begins, not before, and never twice in a run.
#[test]
fn a_tool_is_described_once_at_its_first_call() {
    let other = model_response(&[("other", json!({}))]);
    let input = [&other, &calls_input(), &calls_input()]
        .map(|turn| format!("{turn}\n"))
        .concat();
    for arguments in [&["run"][..], &["run", "--follow"]] {
        let ran = toolq(PRINT_DESCRIPTION)
            .stdin(&input)
            .run(arguments)
            .assert_exit(0);
        assert_eq!(ran.lines().len(), 3);
        assert_eq!(ran.file("described").unwrap(), "say\n");
        let log = ran.log_records();
        let at = |kind: &str| {
            log.iter()
                .position(|record| record["type"] == kind)
                .unwrap()
        };
        assert!(at("tool_result") < at("describe_start"), "{arguments:?}");
    }
}

/// A call in a stream waits until its tool has described its input.
#[test]
fn a_streamed_call_waits_for_its_tools_description() {
    let calls = [
        ("other", json!({})),
        ("say", json!({"x": "hello"})),
        ("say", json!({"y": 1})),
    ];
    let ran = toolq(PRINT_DESCRIPTION)
        .stdin(tool_use_stream(&calls))
        .run(&["run"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts[1], ("hello".to_owned(), false));
    assert!(texts[2].1 && texts[2].0.contains("/x"), "{}", texts[2].0);
    assert_eq!(ran.file("described").unwrap(), "say\n");
    let failed = toolq("exit 3")
        .stdin(tool_use_stream(&calls))
        .run(&["run"])
        .assert_exit(0);
    let errors: Vec<bool> = failed.result_texts().iter().map(|text| text.1).collect();
    assert_eq!(errors, [false, true, true]);
}

/// A run describes the tools that it has to run, not those whose results the memory has.
#[test]
fn restored_results_need_no_description() {
    let input = model_response(&[("say", json!({"x": "hello"}))]);
    let script = r#"set -e
        "$TOOLQ" run --log log.jsonl < input > first; rm described
        "$TOOLQ" run --log log.jsonl < input > second; cmp first second; [ ! -e described ]
        "$TOOLQ" run --log skipped.jsonl --max-calls 0 < input > third || [ $? = 3 ]; rm described
        "$TOOLQ" run --log skipped.jsonl < input > fourth; cmp first fourth; [ -e described ]
        "$TOOLQ" log verify log.jsonl skipped.jsonl"#;
    let tools = describe_tools_file(PRINT_DESCRIPTION).replace("effect: read", "effect: write");
    toolq(PRINT_DESCRIPTION)
        .tools(&tools)
        .file("input", input)
        .run_shell(script)
        .assert_exit(0);
}

#[test]
fn a_replay_describes_only_what_it_executes() {
    let turn = json!([
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "say", "input": {"x": "hello"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "hello"}]},
    ]);
    let recording = json!({"messages": turn}).to_string();
    for (execute, expected) in [("read", Some("say\n")), ("none", None)] {
        let flags = [
            "replay",
            "--execute",
            execute,
            "--log",
            "log.jsonl",
            "r.json",
        ];
        let ran = toolq(PRINT_DESCRIPTION)
            .file("r.json", &recording)
            .run(&flags)
            .assert_exit(0);
        assert_eq!(ran.file("described").as_deref(), expected);
        let log = ran.file("log.jsonl").unwrap();
        assert_eq!(log.contains("\"describe_end\""), expected.is_some());
    }
}
