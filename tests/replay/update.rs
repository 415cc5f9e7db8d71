//! `--update`: which results are rewritten.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::json;

use crate::support::CliSandbox;
use crate::{ok_result, recorded_turn, replay_sandbox};

fn poem_recording(id: &str, result_text: &str) -> String {
    recorded_turn(&[(id, "read", json!({"path": "poem"}), ok_result(result_text))])
}

const CURRENT_RESULT: &str = "so much depends\nupon";

/// Everything except the results that differ stays byte for byte the same.
#[test]
fn only_differing_results_are_rewritten() {
    let recording = [
        poem_recording("a", CURRENT_RESULT).replace('\n', "\r\n\n"),
        poem_recording("b", "stale").replace(
            "{\"type\":\"tool_result\"",
            "{ \"type\" : \"tool_result\", \"x\": 1.0",
        ),
        poem_recording("c", CURRENT_RESULT).trim_end().to_owned(),
    ]
    .concat();
    let sandbox = replay_sandbox().file("r.jsonl", &recording);
    let path = sandbox.path().join("r.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(0);
    assert!(ran.stderr.contains("1 updated"), "{}", ran.stderr);
    let updated = ran.file("r.jsonl").unwrap();
    assert_eq!(
        updated,
        recording.replace("\"stale\"", &json!(CURRENT_RESULT).to_string())
    );
    let metadata = fs::metadata(ran.dir.path().join("r.jsonl")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    let entries: Vec<_> = fs::read_dir(ran.dir.path()).unwrap().collect();
    assert_eq!(entries.len(), 5, "there are leftover files: {entries:?}");
}

#[test]
fn a_matching_recording_is_not_touched() {
    let sandbox = replay_sandbox().file("r.jsonl", poem_recording("a", CURRENT_RESULT));
    let before = fs::metadata(sandbox.path().join("r.jsonl")).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(0);
    let after = fs::metadata(ran.dir.path().join("r.jsonl")).unwrap();
    assert_eq!(
        (before.ino(), before.mtime_nsec()),
        (after.ino(), after.mtime_nsec())
    );
}

/// A result that can't be updated remains a difference, so a stale recording never passes.
#[test]
fn results_that_cannot_be_updated_remain_differences() {
    let recording = [
        poem_recording("a", "stale"),
        recorded_turn(&[("b", "reed", json!({}), ok_result("x"))]),
        poem_recording("c", CURRENT_RESULT),
    ]
    .concat();
    let ran = replay_sandbox()
        .file("r.jsonl", recording)
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(1);
    let updated = ran.file("r.jsonl").unwrap();
    assert!(!updated.contains("stale"));
    let again = replay_sandbox()
        .file("r.jsonl", updated)
        .run(&["replay", "r.jsonl"])
        .assert_exit(1);
    assert!(
        again.stderr.contains("2 match, 1 differs"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_read_only_recording_is_not_updated() {
    let sandbox = replay_sandbox().file("r.jsonl", poem_recording("a", "stale"));
    let path = sandbox.path().join("r.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(1);
    assert!(
        ran.stderr.contains("is not updated: it is read-only"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("r.jsonl").unwrap(), poem_recording("a", "stale"));
}

#[test]
fn a_symbolic_link_stays_one() {
    let sandbox = replay_sandbox().file("there/r.jsonl", poem_recording("a", "stale"));
    symlink("there/r.jsonl", sandbox.path().join("r.jsonl")).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(0);
    assert!(
        fs::symlink_metadata(ran.dir.path().join("r.jsonl"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        ran.file("there/r.jsonl").unwrap(),
        poem_recording("a", CURRENT_RESULT)
    );
}

/// A recording that a tool changes during the replay isn't overwritten.
#[test]
fn a_recording_that_changes_during_the_replay_is_left_alone() {
    let tools = r"version: 1
tools:
  read:
    input_schema: {type: object}
    effect: read
    command: [sh, -c, 'echo >> r.jsonl; echo new']
";
    let recording = recorded_turn(&[("a", "read", json!({}), ok_result("stale"))]);
    let ran = CliSandbox::new()
        .tools(tools)
        .file("r.jsonl", &recording)
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(1);
    assert!(
        ran.stderr
            .contains("it changed while it was being replayed"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("r.jsonl").unwrap(), format!("{recording}\n"));
}
