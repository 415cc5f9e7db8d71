//! Which recordings are replayed: files, directories, globs, shards and stdin.

use serde_json::json;

use crate::replay::{differences, ok_result, recorded_turn, replay, replay_sandbox};
use crate::support::{CliOutput, CliSandbox};

/// Returns a sandbox with seven recordings in directories. Every second one differs.
fn sandbox_with_recordings() -> CliSandbox {
    let mut sandbox = replay_sandbox();
    for number in 0..7 {
        let result_text = if number % 2 == 0 {
            "so much depends\nupon"
        } else {
            "nothing"
        };
        let recording =
            recorded_turn(&[("a", "read", json!({"path": "poem"}), ok_result(result_text))]);
        sandbox = sandbox.file(&format!("t/{}/{number}.jsonl", number % 3), recording);
    }
    sandbox
        .file("t/notes.txt", "not a recording")
        .file("t/.hidden.json", "none")
}

fn differing_files(ran: &CliOutput) -> Vec<String> {
    let report = ran.json();
    let rows = report["differ"].as_array().unwrap();
    rows.iter()
        .map(|row| row["file"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn directories_and_globs_are_read_in_order() {
    let ran = sandbox_with_recordings()
        .run(&["replay", "t", "--json", "-"])
        .assert_exit(1);
    assert_eq!(ran.json()["files"], 7);
    assert_eq!(
        differing_files(&ran),
        ["t/0/3.jsonl", "t/1/1.jsonl", "t/2/5.jsonl"]
    );
    let ran = sandbox_with_recordings()
        .run(&["replay", "t/**/[0-3].jsonl", "t/0", "--json", "-"])
        .assert_exit(1);
    assert_eq!(ran.json()["files"], 5);
}

/// Every recording is in exactly one shard, whatever the number of shards.
#[test]
fn shards_partition_the_recordings() {
    for count in [1, 2, 3, 8] {
        let mut seen = (0, Vec::new());
        for number in 1..=count {
            let shard = format!("{number}/{count}");
            let ran =
                sandbox_with_recordings().run(&["replay", "t", "--json", "-", "--shard", &shard]);
            let report = ran.json();
            assert_eq!(
                ran.code,
                i32::from(!report["differ"].as_array().unwrap().is_empty())
            );
            seen.0 += report["files"].as_u64().unwrap();
            seen.1.extend(differing_files(&ran));
        }
        seen.1.sort();
        assert_eq!(
            seen,
            (
                7,
                ["t/0/3.jsonl", "t/1/1.jsonl", "t/2/5.jsonl"]
                    .map(str::to_owned)
                    .to_vec()
            )
        );
    }
    sandbox_with_recordings()
        .run(&["replay", "t", "--shard", "9/8"])
        .assert_exit(2);
}

#[test]
fn nothing_to_compare_is_an_error() {
    let sandbox = || replay_sandbox().file("bare/notes.txt", "");
    for path in ["nowhere", "bare", "*.json"] {
        let ran = sandbox().run(&["replay", path]).assert_exit(2);
        assert!(ran.stderr.contains("hint:"), "{}", ran.stderr);
    }
    let ran = replay(r#"{"role":"assistant","content":"I am done."}"#, &[]).assert_exit(2);
    assert!(ran.stderr.contains("nothing to compare"), "{}", ran.stderr);
}

/// A call without a recorded result has nothing that it could match, so alone it is no success.
#[test]
fn calls_without_a_recorded_result_are_nothing_to_compare() {
    let asked = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "poem"}}
    ]});
    let ran = replay(&asked.to_string(), &["--json", "-"]).assert_exit(2);
    assert!(ran.stderr.contains("no call has a recorded result"));
    assert!(ran.stderr.contains("toolq plan"), "{}", ran.stderr);
    assert_eq!(ran.json()["calls"], 1);
    replay(&asked.to_string(), &["--shard", "1/1"]).assert_exit(0);
}

/// A recording that can't be read is an error, but the others are still replayed.
#[test]
fn a_broken_recording_does_not_stop_the_replay() {
    for broken in ["", "{", r#"{"a":1}"#] {
        let ran = sandbox_with_recordings()
            .file("t/0/broken.json", broken)
            .run(&["replay", "t", "--json", "-", "--junit", "x"])
            .assert_exit(2);
        assert_eq!(differences(&ran).len(), 3);
        assert!(ran.stderr.contains("t/0/broken.json"), "{}", ran.stderr);
        let junit = ran.file("x").unwrap();
        assert!(junit.contains("errors=\"1\"") && junit.contains("<error type=\"unreadable\""));
    }
}

#[test]
fn stdin_is_a_recording_too() {
    let recording = recorded_turn(&[("a", "read", json!({"path": "poem"}), ok_result("nothing"))]);
    let ran = replay_sandbox()
        .stdin(&recording)
        .run(&["replay", "-", "--json", "-"])
        .assert_exit(1);
    assert_eq!(differing_files(&ran), ["-"]);
    replay_sandbox()
        .stdin(recording)
        .run(&["replay", "-", "--update"])
        .assert_exit(2);
}

/// A stream has no results, so it can't be replayed. The error says what to do instead.
#[test]
fn a_stream_is_refused_with_a_hint() {
    let stream = "data: {\"type\":\"message_start\",\"message\":{}}\n\n";
    for flags in [
        &[][..],
        &["--from", "anthropic-sse"],
        &["--from", "openai-sse"],
    ] {
        let ran = replay_sandbox()
            .file("s.sse", stream)
            .run(&[&["replay", "s.sse"], flags].concat())
            .assert_exit(2);
        assert!(ran.stderr.contains("a stream of events"), "{}", ran.stderr);
        assert!(ran.stderr.contains("plan"), "{}", ran.stderr);
    }
}
