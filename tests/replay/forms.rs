//! Every dialect that holds results: replayed, updated, and replayed again.

use serde_json::{Value, json};

use crate::support::{Toolq, response};
use crate::{TOOLS, counts, differ, scene};

const POEM: &str = "so much depends\nupon";

fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// A call of `read`, and `said` as its result, in each dialect.
fn forms(said: &str) -> Vec<(&'static str, String)> {
    let input = json!({"path": "poem"});
    let arguments = input.to_string();
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": input});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": said}], "is_error": false});
    let chat = [
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": arguments}}]}),
        json!({"role": "tool", "tool_call_id": "call_1", "content": said}),
    ];
    let items = [
        json!({"type": "function_call", "call_id": "call_1", "name": "read", "arguments": arguments}),
        json!({"type": "function_call_output", "call_id": "call_1", "output": said}),
    ];
    let wrapped = json!({"output": said, "metadata": {"exit_code": 0, "duration_seconds": 0.5}});
    let rollout = |payload: &Value| {
        line(&json!({"timestamp": "t", "type": "response_item", "payload": payload}))
    };
    let code = |kind: &str, message: Value| {
        line(
            &json!({"type": kind, "uuid": "u", "sessionId": "s", "message": message, "toolUseResult": {"stdout": said}}),
        )
    };
    vec![
        (
            "anthropic",
            json!({"model": "m", "messages": [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]})
                .to_string(),
        ),
        ("anthropic blocks", json!([call, result]).to_string()),
        ("openai-chat", json!({"model": "m", "messages": chat}).to_string()),
        ("openai-chat lines", chat.iter().map(line).collect()),
        ("trajectory", json!([{"task": 1, "traj": chat}]).to_string()),
        ("openai-responses", json!({"model": "m", "input": items}).to_string()),
        (
            "codex",
            rollout(&items[0])
                + &rollout(&json!({"type": "function_call_output", "call_id": "call_1", "output": wrapped.to_string()})),
        ),
        (
            "claude-code",
            code("assistant", json!({"id": "m", "role": "assistant", "content": [call]}))
                + &code("user", json!({"role": "user", "content": [result]})),
        ),
    ]
}

fn replayed(recording: &str, arguments: &[&str]) -> crate::support::Ran {
    let arguments = [&["replay", "r.json", "--json", "-"], arguments].concat();
    scene().file("r.json", recording).run(&arguments)
}

#[test]
fn every_dialect_is_replayed() {
    for ((name, good), (_, stale)) in forms(POEM).into_iter().zip(forms("so little")) {
        let ran = replayed(&good, &[]);
        assert_eq!(
            (ran.code, counts(&ran)),
            (0, [1, 1, 0, 1]),
            "{name}: {}",
            ran.stderr
        );
        let ran = replayed(&stale, &[]);
        assert_eq!(ran.code, 1, "{name}: {}", ran.stderr);
        assert_eq!(
            differ(&ran),
            [("result".to_owned(), String::new())],
            "{name}"
        );
        // Nobody asks today's tools: whatever was recorded holds.
        let ran = replayed(&stale, &["--execute", "none"]);
        assert_eq!((ran.code, counts(&ran)), (0, [1, 0, 1, 1]), "{name}");
    }
}

/// What is updated is what would have been recorded, byte for byte, but for what no result is.
#[test]
fn every_dialect_is_updated() {
    for ((name, good), (_, stale)) in forms(POEM).into_iter().zip(forms("so little")) {
        let ran = replayed(&stale, &["--update"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let mut updated = ran.file("r.json").unwrap();
        if name == "claude-code" {
            let copy = |said: &str| json!({"toolUseResult": {"stdout": said}}).to_string();
            let inner = |said: &str| copy(said).trim_matches(['{', '}']).to_owned();
            updated = updated.replace(&inner("so little"), &inner(POEM));
        }
        assert_eq!(updated, good, "{name}");
        assert_eq!(replayed(&updated, &[]).code, 0, "{name}");
    }
}

/// A recorded error of a form that knows none.
#[test]
fn a_refused_call_of_a_form_without_errors_holds_by_its_text() {
    let chat = |said: &str| {
        json!({"messages": [
            {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "reed", "arguments": "{"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": said}]})
        .to_string()
    };
    assert_eq!(replayed(&chat("Error: unknown tool"), &[]).code, 0);
    assert_eq!(replayed(&chat("fine"), &[]).code, 1);
    // What toolq itself answered then.
    let asked = json!({"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "reed", "arguments": "{}"}}], "role": "assistant"});
    let ran = scene().stdin(asked.to_string()).run(&["run"]).exits(0);
    let answer = &ran.json()[0];
    let recording = json!({"messages": [asked, answer]}).to_string();
    assert_eq!(replayed(&recording, &[]).code, 0);
}

/// toolq's own session logs, also what they keep in files beside them. They are evidence: none is rewritten.
#[test]
fn its_own_logs_are_replayed() {
    let long = "x".repeat(200_000);
    let tools = TOOLS.replace(
        "effect: read\n    command",
        "effect: read\n    max_output: 1MiB\n    command",
    );
    let scene = |poem: &str| Toolq::new().tools(&tools).file("poem", poem);
    let calls = response(&[
        ("read", json!({"path": "poem"})),
        ("write", json!({"text": long})),
        ("reed", json!({})),
        ("read", json!({"path": "nothing"})),
    ]);
    let ran = scene(&long)
        .stdin(calls)
        .run(&["run", "--log", "log.jsonl"])
        .exits(0);
    let log = ran.file("log.jsonl").unwrap();
    let copied = |poem: &str| {
        let mut copy = scene(poem).file("log.jsonl", &log);
        for entry in std::fs::read_dir(ran.dir.path().join("log.jsonl.d")).unwrap() {
            let entry = entry.unwrap();
            let name = format!("log.jsonl.d/{}", entry.file_name().display());
            copy = copy.file(&name, std::fs::read(entry.path()).unwrap());
        }
        copy
    };
    let same = copied(&long)
        .run(&["replay", "log.jsonl", "--json", "-"])
        .exits(0);
    assert_eq!(counts(&same), [4, 2, 2, 4]);
    let other = copied("short")
        .run(&["replay", "log.jsonl", "--json", "-", "--update"])
        .exits(1);
    assert_eq!(differ(&other).len(), 1);
    assert!(
        other.stderr.contains("is not updated: a session log"),
        "{}",
        other.stderr
    );
    assert_eq!(other.file("log.jsonl").unwrap(), log);
}
