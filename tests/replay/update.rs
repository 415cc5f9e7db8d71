//! `--update`: what is rewritten, and what is not.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::json;

use crate::support::Toolq;
use crate::{says, scene, turn};

fn poem(id: &str, said: &str) -> String {
    turn(&[(id, "read", json!({"path": "poem"}), says(said))])
}

const GOOD: &str = "so much depends\nupon";

/// Only the lines of results that differ are others afterwards, and the rest is as it was, to the last byte.
#[test]
fn only_what_differs_is_rewritten() {
    let recording = [
        poem("a", GOOD).replace('\n', "\r\n\n"),
        poem("b", "stale").replace(
            "{\"type\":\"tool_result\"",
            "{ \"type\" : \"tool_result\", \"x\": 1.0",
        ),
        poem("c", GOOD).trim_end().to_owned(),
    ]
    .concat();
    let scene = scene().file("r.jsonl", &recording);
    let path = scene.path().join("r.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let ran = scene.run(&["replay", "r.jsonl", "--update"]).exits(0);
    assert!(ran.stderr.contains("1 updated"), "{}", ran.stderr);
    let updated = ran.file("r.jsonl").unwrap();
    assert_eq!(
        updated,
        recording.replace("\"stale\"", &json!(GOOD).to_string())
    );
    let metadata = fs::metadata(ran.dir.path().join("r.jsonl")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    let left: Vec<_> = fs::read_dir(ran.dir.path()).unwrap().collect();
    assert_eq!(left.len(), 4, "nothing is left beside it: {left:?}");
}

#[test]
fn what_holds_is_not_touched() {
    let scene = scene().file("r.jsonl", poem("a", GOOD));
    let before = fs::metadata(scene.path().join("r.jsonl")).unwrap();
    let ran = scene.run(&["replay", "r.jsonl", "--update"]).exits(0);
    let after = fs::metadata(ran.dir.path().join("r.jsonl")).unwrap();
    assert_eq!(
        (before.ino(), before.mtime_nsec()),
        (after.ino(), after.mtime_nsec())
    );
}

/// What can't be made today's stays a difference: a stale entry is never green.
#[test]
fn what_cannot_be_updated_is_not_green() {
    let recording = [
        poem("a", "stale"),
        turn(&[("b", "reed", json!({}), says("x"))]),
        poem("c", GOOD),
    ]
    .concat();
    let ran = scene()
        .file("r.jsonl", recording)
        .run(&["replay", "r.jsonl", "--update"])
        .exits(1);
    let updated = ran.file("r.jsonl").unwrap();
    assert!(!updated.contains("stale"));
    let again = scene()
        .file("r.jsonl", updated)
        .run(&["replay", "r.jsonl"])
        .exits(1);
    assert!(
        again.stderr.contains("2 hold, 1 differs"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_recording_that_is_read_only_stays() {
    let scene = scene().file("r.jsonl", poem("a", "stale"));
    let path = scene.path().join("r.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let ran = scene.run(&["replay", "r.jsonl", "--update"]).exits(1);
    assert!(
        ran.stderr.contains("is not updated: it is read-only"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("r.jsonl").unwrap(), poem("a", "stale"));
}

#[test]
fn a_link_stays_a_link() {
    let scene = scene().file("there/r.jsonl", poem("a", "stale"));
    symlink("there/r.jsonl", scene.path().join("r.jsonl")).unwrap();
    let ran = scene.run(&["replay", "r.jsonl", "--update"]).exits(0);
    assert!(
        fs::symlink_metadata(ran.dir.path().join("r.jsonl"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(ran.file("there/r.jsonl").unwrap(), poem("a", GOOD));
}

/// A tool that rewrites the recording while it is replayed loses nothing of it.
#[test]
fn a_recording_that_changes_meanwhile_is_left_alone() {
    let tools = r"version: 1
tools:
  read:
    input_schema: {type: object}
    effect: read
    command: [sh, -c, 'echo >> r.jsonl; echo new']
";
    let recording = turn(&[("a", "read", json!({}), says("stale"))]);
    let ran = Toolq::new()
        .tools(tools)
        .file("r.jsonl", &recording)
        .run(&["replay", "r.jsonl", "--update"])
        .exits(1);
    assert!(
        ran.stderr.contains("it changed while it was replayed"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("r.jsonl").unwrap(), format!("{recording}\n"));
}
