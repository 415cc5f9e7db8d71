//! Recordings in every dialect that has results are replayed, updated, and replayed again.

use serde_json::{Value, json};

use crate::replay::{TOOLS, differences, replay_sandbox, report_counts};
use crate::support::{CliSandbox, model_response};

const POEM: &str = "so much depends\nupon";

fn json_line(value: &Value) -> String {
    format!("{value}\n")
}

/// Returns a recording in each dialect, with a call of `read` and `result_text` as its result.
fn recordings_by_dialect(result_text: &str) -> Vec<(&'static str, String)> {
    let input = json!({"path": "poem"});
    let arguments = input.to_string();
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": input});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": result_text}], "is_error": false});
    let chat = [
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": arguments}}]}),
        json!({"role": "tool", "tool_call_id": "call_1", "content": result_text}),
    ];
    let items = [
        json!({"type": "function_call", "call_id": "call_1", "name": "read", "arguments": arguments}),
        json!({"type": "function_call_output", "call_id": "call_1", "output": result_text}),
    ];
    let wrapped =
        json!({"output": result_text, "metadata": {"exit_code": 0, "duration_seconds": 0.5}});
    let rollout = |payload: &Value| {
        json_line(&json!({"timestamp": "t", "type": "response_item", "payload": payload}))
    };
    let code = |kind: &str, message: Value| {
        json_line(
            &json!({"type": kind, "uuid": kind, "sessionId": "s", "message": message, "toolUseResult": {"stdout": result_text}}),
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
        ("openai-chat lines", chat.iter().map(json_line).collect()),
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

fn replay_recording(recording: &str, arguments: &[&str]) -> crate::support::CliOutput {
    let arguments = [&["replay", "r.json", "--json", "-"], arguments].concat();
    replay_sandbox().file("r.json", recording).run(&arguments)
}

#[test]
fn every_dialect_is_replayed() {
    for ((name, good), (_, stale)) in recordings_by_dialect(POEM)
        .into_iter()
        .zip(recordings_by_dialect("so little"))
    {
        let ran = replay_recording(&good, &[]);
        assert_eq!(
            (ran.code, report_counts(&ran)),
            (0, [1, 1, 0, 1]),
            "{name}: {}",
            ran.stderr
        );
        let ran = replay_recording(&stale, &[]);
        assert_eq!(ran.code, 1, "{name}: {}", ran.stderr);
        assert_eq!(
            differences(&ran),
            [("result".to_owned(), String::new())],
            "{name}"
        );
        // Without execution, the recorded results always match.
        let ran = replay_recording(&stale, &["--execute", "none"]);
        assert_eq!((ran.code, report_counts(&ran)), (0, [1, 0, 1, 1]), "{name}");
    }
}

/// An updated recording is byte for byte what would have been recorded, except for copies of the result elsewhere.
#[test]
fn every_dialect_is_updated() {
    for ((name, good), (_, stale)) in recordings_by_dialect(POEM)
        .into_iter()
        .zip(recordings_by_dialect("so little"))
    {
        let ran = replay_recording(&stale, &["--update"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let mut updated = ran.file("r.json").unwrap();
        if name == "claude-code" {
            let copied =
                |result_text: &str| json!({"toolUseResult": {"stdout": result_text}}).to_string();
            let inner = |result_text: &str| copied(result_text).trim_matches(['{', '}']).to_owned();
            updated = updated.replace(&inner("so little"), &inner(POEM));
        }
        assert_eq!(updated, good, "{name}");
        assert_eq!(replay_recording(&updated, &[]).code, 0, "{name}");
    }
}

/// Some dialects don't mark errors, so the text of a result must tell whether it is one.
#[test]
fn a_rejected_call_matches_by_text_where_a_dialect_has_no_errors() {
    let chat = |result_text: &str| {
        json!({"messages": [
            {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": result_text}]})
        .to_string()
    };
    let refusal = "Invalid input for read; it was not run:\n- is not JSON";
    assert_eq!(replay_recording(&chat(refusal), &[]).code, 0);
    for other in ["fine", "Error: the file is locked"] {
        assert_eq!(replay_recording(&chat(other), &[]).code, 1, "{other}");
    }
    // The text of toolq's own result.
    let call_message = json!({"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}], "role": "assistant"});
    let tools = TOOLS.replace(
        "tools:\n",
        "messages: {invalid_input: 'nope: {details}'}\ntools:\n",
    );
    let ran = CliSandbox::new()
        .tools(&tools)
        .stdin(call_message.to_string())
        .run(&["run"])
        .assert_exit(0);
    let result = &ran.json()[0];
    assert!(
        result["content"].as_str().unwrap().starts_with("nope"),
        "{result}"
    );
    let recording = json!({"messages": [call_message, result]}).to_string();
    CliSandbox::new()
        .tools(&tools)
        .file("r.json", recording)
        .run(&["replay", "r.json"])
        .assert_exit(0);
}

/// A session log has the status of each call, so an error isn't mistaken for a refusal, regardless of its text.
#[test]
fn a_session_log_says_whether_a_call_was_rejected() {
    let calls = model_response(&[("fake", json!({"path": "poem"}))]);
    let fake = "version: 1\ntools:\n  fake:\n    description: Fails.\n    input_schema: {type: object}\n    command: [sh, -c, 'echo \"<tool_use_error>\"; exit 1']\n    messages: {failed: '<tool_use_error>no'}\n";
    let ran = CliSandbox::new()
        .tools(fake)
        .stdin(calls)
        .run(&["run", "--log", "log.jsonl"])
        .assert_exit(0);
    let log = ran.file("log.jsonl").unwrap();
    assert!(log.contains("<tool_use_error>no"), "{log}");
    let ran = CliSandbox::new()
        .tools(&fake.replace("{type: object}", "{type: object, required: [name]}"))
        .file("log.jsonl", log)
        .run(&["replay", "log.jsonl", "--json", "-"])
        .assert_exit(1);
    assert_eq!(
        differences(&ran),
        [("schema".to_owned(), "/name".to_owned())]
    );
}

/// toolq's own session logs can be replayed, including their blobs. They are evidence and never updated.
#[test]
fn session_logs_are_replayed() {
    let long = "x".repeat(200_000);
    let tools = TOOLS.replace(
        "effect: read\n    command",
        "effect: read\n    max_output: 1MiB\n    command",
    );
    let sandbox = |poem: &str| CliSandbox::new().tools(&tools).file("poem", poem);
    let calls = model_response(&[
        ("read", json!({"path": "poem"})),
        ("write", json!({"text": long})),
        ("read", json!({"pth": "poem"})),
        ("read", json!({"path": "nothing"})),
    ]);
    let ran = sandbox(&long)
        .stdin(calls)
        .run(&["run", "--log", "log.jsonl"])
        .assert_exit(0);
    let log = ran.file("log.jsonl").unwrap();
    let copied = |poem: &str| {
        let mut copy = sandbox(poem).file("log.jsonl", &log);
        for entry in std::fs::read_dir(ran.dir.path().join("log.jsonl.d")).unwrap() {
            let entry = entry.unwrap();
            let name = format!("log.jsonl.d/{}", entry.file_name().display());
            copy = copy.file(&name, std::fs::read(entry.path()).unwrap());
        }
        copy
    };
    let same = copied(&long)
        .run(&["replay", "log.jsonl", "--json", "-"])
        .assert_exit(0);
    assert_eq!(report_counts(&same), [4, 2, 2, 4]);
    let other = copied("short")
        .run(&["replay", "log.jsonl", "--json", "-", "--update"])
        .assert_exit(1);
    assert_eq!(differences(&other).len(), 1);
    assert!(
        other.stderr.contains("is not updated: a session log"),
        "{}",
        other.stderr
    );
    assert_eq!(other.file("log.jsonl").unwrap(), log);
}
