//! `toolq run --follow --control`, played by a host process.

mod announcement;
mod documentation;
mod host;
mod host_tools;
mod hostile_host;
mod killed;
mod reload;

use std::fs;

use crate::support::CliSandbox;
use crate::support::waiting::wait_until;
use host::Host;
use serde_json::json;

const TOOLS: &str = r#"
version: 1
secrets: [TOKEN]
tools:
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  pay:
    approve: true
    input_schema: {type: object, properties: {amount: {type: integer}, note: {type: string}}}
    command: [sh, -c, "echo pay >> ran; echo paid"]
  wait: {input_schema: {type: object}, effect: read, command: [sh, -c, "touch waiting; sleep 60"]}
  write: {input_schema: {type: object}, command: [sh, -c, "echo write >> ran"]}
"#;

/// The host hands over a value: it has no line number, and the hint is all that says what to hand over instead.
#[test]
fn what_is_no_message_is_refused_with_what_to_send_instead() {
    let mut host = Host::start(TOOLS, &[]);
    host.send(r#"{"type":"cancel","id":"a"}"#);
    host.read();
    host.send(r#"{"type":"turn","id":"a","message":[{"id":"c","type":"function"}]}"#);
    let answer = host.read();
    let message = answer["error"]["message"].as_str().unwrap();
    let start = "an array isn't a model response; expected a response, an assistant message, ";
    assert!(message.starts_with(start), "{message}");
    assert!(!message.contains("message:"), "{message}");
}

/// Each line is answered, regardless of what it contains, and the process keeps running.
#[test]
fn a_bad_line_is_answered_and_the_process_lives_on() {
    let mut host = Host::start(TOOLS, &[]);
    for (line, words) in [
        ("{", "isn't a JSON object"),
        ("[]", "isn't a JSON object"),
        ("{}", "`type` must be"),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"write","input":{}}]}"#,
            "`type` must be",
        ),
        (
            r#"{"type":"tool_use","id":"a","name":"write","input":{}}"#,
            "`type` must be",
        ),
        (r#"{"type":"turn","message":[]}"#, "needs an `id`"),
        (r#"{"type":"turn","id":{},"message":[]}"#, "needs an `id`"),
        (r#"{"type":"turn","id":"a"}"#, "message"),
        (r#"{"type":"turn","id":"a","message":5}"#, ""),
        (r#"{"type":"turn","id":"a","message":[],"more":1}"#, "more"),
        (r#"{"type":"cancel","id":"a"}"#, "no turn"),
        (
            r#"{"type":"approve","id":"a","question":1,"decision":"yes"}"#,
            "no turn",
        ),
        (
            r#"{"type":"approve","id":"a","question":1,"decision":"maybe"}"#,
            "maybe",
        ),
        (
            r#"{"type":"s3cr3t-value-of-mine","id":"a"}"#,
            "`type` must be",
        ),
        (
            r#"{"type":"approve","id":"a","question":1,"decision":"s3cr3t-value-of-mine"}"#,
            "masked",
        ),
    ] {
        host.send(line);
        let answer = host.read();
        assert_eq!(answer["type"], "error", "{line}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{line}: {message}");
        assert!(!answer.to_string().contains("s3cr3t"), "{answer}");
    }
    host.turn("a", &[("look", json!({}))]);
    assert_eq!(host.read()["message"][0]["content"], "seen");
    let end = host.end();
    assert_eq!((end.code, end.lines.len()), (3, 0));
    assert!(!end.dir.join("ran").exists());
}

/// With an error, and the process lives on.
#[test]
fn a_long_line_is_answered() {
    let mut host = Host::start(TOOLS, &["--max-input", "1KiB"]);
    host.send(&"x".repeat(5000));
    let message = host.read()["error"]["message"].to_string();
    assert!(message.contains("too long"), "{message}");
    host.turn("a", &[("look", json!({}))]);
    assert_eq!(host.read()["message"][0]["content"], "seen");
    assert_eq!(host.end().code, 3);
}

/// A canceled turn is answered, its processes are gone, and its id can be used again.
#[test]
fn a_canceled_turn_is_answered() {
    let mut host = Host::start(TOOLS, &[]);
    host.turn("a", &[("wait", json!({})), ("write", json!({}))]);
    let waiting = host.dir.join("waiting");
    while !waiting.exists() {
        std::thread::yield_now();
    }
    host.turn("a", &[("look", json!({}))]);
    let message = host.read()["error"]["message"].to_string();
    assert!(message.contains("hasn't been answered"), "{message}");
    host.send(r#"{"type":"cancel","id":"a"}"#);
    let answer = host.read();
    assert_eq!(answer["type"], "answer", "{answer}");
    assert_eq!(answer["message"][0]["is_error"], true);
    assert_eq!(answer["message"][1]["is_error"], true);
    host.turn("a", &[("look", json!({}))]);
    assert_eq!(host.read()["message"][0]["content"], "seen");
    let end = host.end();
    assert!(!end.dir.join("ran").exists());
}

/// A decision counts only for the call that the question was about.
#[test]
fn only_the_call_that_was_asked_about_is_approved() {
    let mut host = Host::start(TOOLS, &[]);
    host.turn("a", &[("pay", json!({"note": "s3cr3t-value-of-mine"}))]);
    let asked = host.read();
    assert_eq!(asked["call"]["input"]["note"], "[masked]", "{asked}");
    for line in [
        r#"{"type":"approve","id":"a","question":9,"decision":"yes"}"#,
        r#"{"type":"approve","id":"b","question":1,"decision":"yes"}"#,
    ] {
        host.send(line);
        assert_eq!(host.read()["type"], "error");
    }
    host.turn("b", &[("pay", json!({}))]);
    assert_eq!(host.read()["type"], "approval");
    host.send(r#"{"type":"approve","id":"b","question":2,"decision":"yes"}"#);
    assert_eq!(host.read()["id"], "b");
    // The host leaves, and with it who could decide.
    let end = host.end();
    assert_eq!(end.code, 3);
    assert_eq!(
        (&end.lines[0]["type"], &end.lines[0]["id"]),
        (&json!("answer"), &json!("a"))
    );
    let text = end.lines[0]["message"][0]["content"].as_str().unwrap();
    assert!(text.contains("needs an approval"), "{text}");
    assert_eq!(fs::read_to_string(end.dir.join("ran")).unwrap(), "pay\n");
}

/// A host without a person at hand lets a call wait, and a person decides before the same turn comes again.
#[test]
fn a_host_leaves_a_call_waiting_for_a_later_approval() {
    let mut host = Host::start(TOOLS, &[]);
    let id = "toolu_01A09q90qw90lq917835lq9x";
    let call = json!({"type": "tool_use", "id": id, "name": "pay", "input": {}});
    let turn = json!({"type": "turn", "id": "a", "message": [call]});
    host.send_json(&turn);
    assert_eq!(host.read()["type"], "approval");
    host.send(r#"{"type":"approve","id":"a","question":1,"decision":"later"}"#);
    let waits = host.read()["message"][0]["content"].to_string();
    assert!(waits.contains("needs an approval"), "{waits}");
    let approve = ["approvals", "approve", id, "--log", "log.jsonl"];
    wait_until("the question is noted", || {
        let mut command = host.sandbox().command(&approve);
        command.output().unwrap().status.success()
    });
    host.send_json(&turn);
    assert_eq!(host.read()["message"][0]["content"], "paid");
    let end = host.end();
    assert_eq!(fs::read_to_string(end.dir.join("ran")).unwrap(), "pay\n");
}

/// A run whose results can't be written doesn't succeed.
#[test]
fn a_full_disk_behind_stdout_is_an_error() {
    let turn = r#"{"type":"turn","id":1,"message":[{"type":"tool_use","id":"x","name":"look","input":{}}]}"#;
    let output = CliSandbox::new()
        .tools(TOOLS)
        .stdin(turn)
        .run_shell(r#""$TOOLQ" run --follow --control --no-log -q > /dev/full"#);
    assert_eq!(output.code, 74, "{}", output.stderr);
}
