//! Who is asked, and when.

use serde_json::{Value, json};

use super::support::response;
use super::{WELL, calls, toolq};

/// A stream of the Messages API that calls these tools.
fn stream(calls: &[(&str, Value)]) -> String {
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
fn who_is_not_called_is_not_asked() {
    let other = response(&[("other", json!({}))]);
    for arguments in [&["run"][..], &["plan", "--describe"]] {
        let ran = toolq(WELL).stdin(&other).run(arguments).exits(0);
        assert_eq!(ran.file("asked"), None);
        assert!(!ran.stderr.contains("say"), "{}", ran.stderr);
    }
    let log = toolq(WELL).stdin(&other).run(&["run"]).exits(0).log();
    assert!(log.iter().all(|record| record["type"] != "describe_start"));
}

/// A call of a later turn is no reason to ask now; what was asked once is not asked again.
#[test]
fn it_is_asked_once_when_its_first_call_comes() {
    let other = response(&[("other", json!({}))]);
    let input = [&other, &calls(), &calls()]
        .map(|turn| format!("{turn}\n"))
        .concat();
    for arguments in [&["run"][..], &["run", "--follow"]] {
        let ran = toolq(WELL).stdin(&input).run(arguments).exits(0);
        assert_eq!(ran.lines().len(), 3);
        assert_eq!(ran.file("asked").unwrap(), "me\n");
        let log = ran.log();
        let at = |kind: &str| {
            log.iter()
                .position(|record| record["type"] == kind)
                .unwrap()
        };
        assert!(at("tool_result") < at("describe_start"), "{arguments:?}");
    }
}

/// FAULTS 17: a call of a stream starts while the rest is spoken, once its tool has said what it takes.
#[test]
fn a_call_of_a_stream_waits_for_what_its_tool_says() {
    let asked = [
        ("other", json!({})),
        ("say", json!({"x": "hello"})),
        ("say", json!({"y": 1})),
    ];
    let ran = toolq(WELL).stdin(stream(&asked)).run(&["run"]).exits(0);
    let texts = ran.texts();
    assert_eq!(texts[1], ("hello".to_owned(), false));
    assert!(texts[2].1 && texts[2].0.contains("/x"), "{}", texts[2].0);
    assert_eq!(ran.file("asked").unwrap(), "me\n");
    let silent = toolq("exit 3").stdin(stream(&asked)).run(&["run"]).exits(0);
    let errors: Vec<bool> = silent.texts().iter().map(|text| text.1).collect();
    assert_eq!(errors, [false, true, true]);
}

/// A resumed run asks for what it has to run, and not for what it prints.
#[test]
fn what_is_printed_from_the_log_needs_no_schema() {
    let asked = response(&[("say", json!({"x": "hello"}))]);
    let script = r#"set -e
        "$TOOLQ" run --log log.jsonl < input > first; rm asked
        "$TOOLQ" run --resume --log log.jsonl < input > second; cmp first second; [ ! -e asked ]
        "$TOOLQ" run --log skipped.jsonl --max-calls 0 < input > third || [ $? = 3 ]; rm asked
        "$TOOLQ" run --resume --log skipped.jsonl < input > fourth; cmp first fourth; [ -e asked ]
        "$TOOLQ" log verify log.jsonl skipped.jsonl"#;
    toolq(WELL).file("input", asked).shell(script).exits(0);
}

#[test]
fn a_replay_asks_where_it_runs() {
    let turn = json!([
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "say", "input": {"x": "hello"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "hello"}]},
    ]);
    let recording = json!({"messages": turn}).to_string();
    for (execute, asked) in [("read", Some("me\n")), ("none", None)] {
        let flags = [
            "replay",
            "--execute",
            execute,
            "--log",
            "log.jsonl",
            "r.json",
        ];
        let ran = toolq(WELL).file("r.json", &recording).run(&flags).exits(0);
        assert_eq!(ran.file("asked").as_deref(), asked);
        let log = ran.file("log.jsonl").unwrap();
        assert_eq!(log.contains("\"describe_end\""), asked.is_some());
    }
}

/// FAULTS 116: where the log has another call, nothing runs, and so nobody is asked: not beside it, and not behind it.
#[test]
fn a_conflict_asks_nobody() {
    let first = |other: Value| response(&[("other", other), ("say", json!({"x": "hello"}))]);
    let calls = [
        ("other", json!({"not": "that"})),
        ("say", json!({"x": "hello"})),
    ];
    for (flag, conflict) in [
        ("--follow", first(json!({"not": "that"}))),
        ("--all", stream(&calls)),
    ] {
        let ran = toolq(WELL)
            .file("input", first(json!({})) + "\n")
            .file("conflict", conflict + "\n")
            .shell(&format!(
                r#""$TOOLQ" run --log log --max-calls 0 < input > results; rm asked
                "$TOOLQ" run --resume {flag} --log log < conflict"#
            ))
            .exits(2);
        assert!(
            ran.stderr.contains("the session log has other"),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.file("asked"), None, "{flag}");
    }
}
