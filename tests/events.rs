//! `--events` from the outside: where they go.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

mod support;

use serde_json::json;
use support::{Toolq, json_lines, response};

const TOOLS: &str = "
version: 1
tools:
  echo:
    description: Answer with the input.
    input_schema: {type: object}
    effect: read
    command: [cat]
";

fn toolq() -> Toolq {
    Toolq::new()
        .tools(TOOLS)
        .file("asked.json", response(&[("echo", json!({}))]))
}

/// Everything that a whole stream of one call holds.
fn assert_whole(events: &str) {
    let types: Vec<_> = json_lines(events)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    let expected =
        "tool_queued batch_started tool_started tool_completed result_written queue_drained";
    assert_eq!(types.join(" "), expected);
}

/// The shell and toolq write to one place in the file: nobody overwrites what the other wrote.
#[test]
fn a_descriptor_is_shared_with_the_shell() {
    let ran = toolq()
        .shell(r#"{ echo before >&3; "$TOOLQ" run asked.json --events fd:3; echo behind >&3; } 3>events"#)
        .exits(0);
    let events = ran.file("events").unwrap();
    let events = events.strip_prefix("before\n").unwrap();
    assert_whole(events.strip_suffix("behind\n").unwrap());
    let piped = toolq().shell(r#""$TOOLQ" run asked.json --events fd:3 3>&1 >/dev/null | cat"#);
    assert_whole(&piped.exits(0).stdout);
}

/// A number that nobody opened may be that of a file of toolq's own, as of the input: it stays as it was.
#[test]
fn a_descriptor_must_be_handed_over_for_writing() {
    for (number, redirect, why) in [
        ("3", "", "not open"),
        ("4", "", "not open"),
        ("5", "", "not open"),
        ("3", "3<asked.json", "for reading only"),
        ("1", "", "stdout is for the results"),
        ("x", "", "no number"),
        ("-1", "", "no number"),
    ] {
        let script = format!(r#""$TOOLQ" run asked.json --events fd:{number} {redirect}"#);
        let ran = toolq().shell(&script).exits(2);
        assert!(ran.stderr.contains(why), "{script}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert_eq!(
            ran.file("asked.json").unwrap(),
            response(&[("echo", json!({}))])
        );
    }
}

/// FAULTS 121: nobody waits for the reader of a pipe, and it may come late.
/// The log is no place for events, by whatever name it goes. Nothing runs, and nothing is written.
#[test]
fn events_are_kept_apart_from_the_log() {
    for events in ["log.jsonl", "./log.jsonl", "link"] {
        let toolq = toolq().file("log.jsonl", "");
        std::os::unix::fs::symlink("log.jsonl", toolq.path().join("link")).unwrap();
        let ran = toolq.run(&[
            "run",
            "--events",
            events,
            "--log",
            "log.jsonl",
            "asked.json",
        ]);
        let ran = ran.exits(2);
        assert!(
            ran.stderr.contains("it is the session log"),
            "{}",
            ran.stderr
        );
        assert_eq!(
            std::fs::read_to_string(ran.dir.path().join("log.jsonl")).unwrap(),
            ""
        );
    }
}

#[test]
fn a_pipe_with_a_name_is_written_when_its_reader_comes() {
    let read = toolq()
        .shell(r#"mkfifo events; "$TOOLQ" run asked.json --events events >/dev/null & cat events"#)
        .exits(0);
    assert_whole(&read.stdout);
    let unread = toolq()
        .shell(r#"mkfifo events; "$TOOLQ" run asked.json --events events"#)
        .exits(0);
    assert!(unread.stdout.contains("tool_result"), "{}", unread.stdout);
    assert!(unread.stderr.contains("warning: "), "{}", unread.stderr);
}
