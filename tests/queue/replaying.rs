//! `toolq replay --queue`: workers replay recordings, and their reports are merged.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::queue_sandbox::{QUEUE, QueueProcess, QueueSandbox};
use crate::support::waiting::wait_until;

/// `look` adds its text to the file `effects`, one line for each time that it runs.
const TOOLS: &str = r#"
version: 1
tools:
  look:
    input_schema: &text {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
    effect: read
    command: {argv: [sh, -c, 'echo "$TEXT" >> effects; echo "saw $TEXT"'], env: {TEXT: "{text}"}}
  list: {input_schema: {type: object}, effect: read, max_output: 1MiB, command: [seq, "30000"]}
  write: {input_schema: *text, effect: write, command: ["true", "{text}"]}
"#;

/// Returns a recording of one turn with these calls: a tool, a text, and the recorded result.
fn recording(calls: &[(&str, &str, &str)]) -> String {
    let ids = (0..calls.len()).map(|number| format!("toolu_{number}"));
    let blocks = calls.iter().zip(ids.clone()).map(|((tool, text, _), id)| {
        json!({"type": "tool_use", "id": id, "name": tool, "input": {"text": text}})
    });
    let results = calls.iter().zip(ids).map(
        |((_, _, result), id)| json!({"type": "tool_result", "tool_use_id": id, "content": result}),
    );
    let asked = json!({"role": "assistant", "content": blocks.collect::<Vec<_>>()});
    let told = json!({"role": "user", "content": results.collect::<Vec<_>>()});
    format!("{asked}\n{told}\n")
}

/// Leaves out how long calls took.
fn without_times(report: &str) -> String {
    let mut parts = report.split(" time=\"");
    let begin = parts.next().unwrap().to_owned();
    parts.fold(begin, |text, part| text + part.split_once('"').unwrap().1)
}

fn sandbox_with_recordings() -> Option<QueueSandbox> {
    let sandbox = QueueSandbox::with_tools(TOOLS)?;
    fs::create_dir(sandbox.path("recordings")).unwrap();
    let write = |name: &str, text: &str| sandbox.write(&format!("recordings/{name}"), text);
    write(
        "a.jsonl",
        &recording(&[("look", "a", "saw a\n"), ("look", "b", "saw b\n")]),
    );
    write(
        "b.jsonl",
        &recording(&[("look", "c", "saw something else\n")]),
    );
    // A read after a write is stale, and a tool that is gone can't run.
    let calls = [
        ("write", "x", "done"),
        ("look", "d", "saw x\n"),
        ("gone", "", "?"),
    ];
    write("c.jsonl", &recording(&calls));
    write("d.json", r#"{"role": "assistant", "content": ["#);
    write("e.jsonl", &recording(&[("look", "e", "saw e\n")]));
    Some(sandbox)
}

#[test]
fn a_replay_over_two_workers_reports_what_a_local_one_does() {
    let Some(sandbox) = sandbox_with_recordings() else {
        return;
    };
    // Its result is in a file beside the log.
    sandbox.write(
        "input.json",
        r#"{"type": "tool_use", "id": "toolu_9", "name": "list", "input": {}}"#,
    );
    let log = "recordings/log.jsonl";
    sandbox
        .run(&["run", "--log", log, "input.json"])
        .assert_exit(0);
    assert!(
        fs::read_dir(sandbox.path("recordings"))
            .unwrap()
            .flatten()
            .any(|entry| entry.path().is_dir())
    );
    let replay = |name: &str, more: &[&str]| {
        let reports = ["json", "junit", "markdown", "html"]
            .map(|kind| [format!("--{kind}"), format!("{name}.{kind}")])
            .concat();
        let reports: Vec<&str> = reports.iter().map(String::as_str).collect();
        let arguments = [&["replay", "--strict", "recordings"], more, &reports[..]].concat();
        sandbox.run(&arguments)
    };
    let local = replay("local", &[]);
    let _workers = [sandbox.start_worker(&[]), sandbox.start_worker(&[])];
    let shared = replay("shared", &["--queue", QUEUE]);
    assert_eq!(shared.stderr, local.stderr);
    assert_eq!((shared.code, local.code), (Some(2), Some(2)));
    for kind in ["json", "junit", "markdown", "html"] {
        let read =
            |name: &str| fs::read_to_string(sandbox.path(&format!("{name}.{kind}"))).unwrap();
        assert_eq!(
            without_times(&read("shared")),
            without_times(&read("local")),
            "{kind}"
        );
    }
    let report: Value =
        serde_json::from_str(&fs::read_to_string(sandbox.path("shared.json")).unwrap()).unwrap();
    assert_eq!(report["files"], 5);
    assert_eq!(report["calls"], 8);
}

#[test]
fn an_interrupted_replay_goes_on_and_the_next_one_begins_anew() {
    let Some(sandbox) = sandbox_with_recordings() else {
        return;
    };
    fs::remove_file(sandbox.path("recordings/d.json")).unwrap();
    let replay = ["replay", "recordings", "--queue", QUEUE];
    let interrupted = sandbox.start(&replay);
    let waiting = || {
        let status = sandbox
            .run(&["queue", "status", QUEUE, "--format", "json"])
            .stdout;
        let status: Value = serde_json::from_str(&status).unwrap_or_default();
        status["waiting"].as_u64()
    };
    wait_until("all recordings are submitted", || waiting() == Some(4));
    assert_eq!(interrupted.end(Signal::INT).code, Some(130));
    let worker = sandbox.start_worker(&["--until-empty"]);
    assert_eq!(worker.wait().code, Some(0));
    let sorted = || {
        let mut effects = sandbox.effects();
        effects.sort();
        effects
    };
    assert_eq!(sorted(), ["a", "b", "c", "d", "e"]);
    // No worker runs: the reports are there.
    sandbox.run(&replay).assert_exit(1);
    assert_eq!(sorted().len(), 5);
    let _worker = sandbox.start_worker(&[]);
    sandbox.run(&replay).assert_exit(1);
    assert_eq!(sorted(), ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e"]);
}

/// Starts a replay of five recordings, of which no worker takes one.
fn start_waiting_replay(sandbox: &QueueSandbox) -> QueueProcess {
    let replay = sandbox.start(&["replay", "recordings", "--queue", QUEUE]);
    wait_until("all recordings are submitted", || {
        let status = sandbox.run(&["queue", "status", QUEUE]).stdout;
        status.contains("waiting      5\n")
    });
    replay
}

#[test]
fn a_replay_over_a_queue_that_is_purged_ends() {
    let Some(sandbox) = sandbox_with_recordings() else {
        return;
    };
    let replay = start_waiting_replay(&sandbox);
    sandbox
        .run(&["queue", "purge", QUEUE, "--force"])
        .assert_exit(0);
    let output = replay.wait().assert_exit(4);
    assert!(
        output.stderr.contains("the queue was purged"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_replay_is_interrupted_although_its_server_is_gone() {
    let Some(mut sandbox) = sandbox_with_recordings() else {
        return;
    };
    let replay = start_waiting_replay(&sandbox);
    sandbox.stop_server();
    let began = Instant::now();
    let output = replay.end(Signal::INT);
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    // It would wait for a minute until a server is back.
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_file_that_cannot_be_read_is_not_blamed_on_the_server() {
    let Some(sandbox) = sandbox_with_recordings() else {
        return;
    };
    let files = sandbox.path("recordings/a.jsonl.d");
    fs::create_dir(&files).unwrap();
    symlink("nosuch", files.join("0a".repeat(32))).unwrap();
    let output = sandbox
        .run(&["replay", "recordings", "--queue", QUEUE])
        .assert_exit(4)
        .stderr;
    assert!(output.contains("can't be read: No such file"), "{output}");
    assert!(!output.contains("NATS"), "{output}");
}

#[test]
fn what_may_not_run_twice_is_not_shared_over_a_queue() {
    let Some(sandbox) = sandbox_with_recordings() else {
        return;
    };
    let arguments = ["replay", "recordings", "--queue", QUEUE, "--execute", "all"];
    let refused = sandbox.run(&arguments).assert_exit(2);
    assert!(
        refused.stderr.contains("can't be shared over a queue"),
        "{}",
        refused.stderr
    );
}
