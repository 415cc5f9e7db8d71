//! Which recordings are replayed.

use serde_json::json;

use crate::support::{Ran, Toolq};
use crate::{differ, replay, says, scene, turn};

/// Seven recordings in folders, of which every second one differs.
fn folder() -> Toolq {
    let mut scene = scene();
    for number in 0..7 {
        let said = if number % 2 == 0 {
            "so much depends\nupon"
        } else {
            "nothing"
        };
        let recording = turn(&[("a", "read", json!({"path": "poem"}), says(said))]);
        scene = scene.file(&format!("t/{}/{number}.jsonl", number % 3), recording);
    }
    scene
        .file("t/notes.txt", "no recording")
        .file("t/.hidden.json", "none")
}

fn files(ran: &Ran) -> Vec<String> {
    let report = ran.json();
    let rows = report["differ"].as_array().unwrap();
    rows.iter()
        .map(|row| row["file"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn folders_and_globs_are_read_in_order() {
    let ran = folder().run(&["replay", "t", "--json", "-"]).exits(1);
    assert_eq!(ran.json()["files"], 7);
    assert_eq!(files(&ran), ["t/0/3.jsonl", "t/1/1.jsonl", "t/2/5.jsonl"]);
    let ran = folder()
        .run(&["replay", "t/**/[0-3].jsonl", "t/0", "--json", "-"])
        .exits(1);
    assert_eq!(ran.json()["files"], 5);
}

/// Every recording is in one shard, whatever their number.
#[test]
fn shards_part_the_recordings() {
    for of in [1, 2, 3, 8] {
        let mut seen = (0, Vec::new());
        for number in 1..=of {
            let shard = format!("{number}/{of}");
            let ran = folder().run(&["replay", "t", "--json", "-", "--shard", &shard]);
            let report = ran.json();
            assert_eq!(
                ran.code,
                i32::from(!report["differ"].as_array().unwrap().is_empty())
            );
            seen.0 += report["files"].as_u64().unwrap();
            seen.1.extend(files(&ran));
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
    folder().run(&["replay", "t", "--shard", "9/8"]).exits(2);
}

#[test]
fn nothing_to_compare_is_an_error() {
    let scene = || scene().file("empty/notes.txt", "");
    for path in ["nowhere", "empty", "*.json"] {
        let ran = scene().run(&["replay", path]).exits(2);
        assert!(ran.stderr.contains("hint:"), "{}", ran.stderr);
    }
    let ran = replay(r#"{"role":"assistant","content":"I am done."}"#, &[]).exits(2);
    assert!(ran.stderr.contains("nothing to compare"), "{}", ran.stderr);
}

/// One that can't be read is an error, and hides no other.
#[test]
fn a_broken_recording_hides_no_other() {
    for broken in ["", "{", r#"{"a":1}"#] {
        let ran = folder()
            .file("t/0/broken.json", broken)
            .run(&["replay", "t", "--json", "-", "--junit", "x"])
            .exits(2);
        assert_eq!(differ(&ran).len(), 3);
        assert!(ran.stderr.contains("t/0/broken.json"), "{}", ran.stderr);
        let junit = ran.file("x").unwrap();
        assert!(junit.contains("errors=\"1\"") && junit.contains("<error type=\"unreadable\""));
    }
}

#[test]
fn stdin_is_a_recording_too() {
    let recording = turn(&[("a", "read", json!({"path": "poem"}), says("nothing"))]);
    let ran = scene()
        .stdin(&recording)
        .run(&["replay", "-", "--json", "-"])
        .exits(1);
    assert_eq!(files(&ran), ["-"]);
    scene()
        .stdin(recording)
        .run(&["replay", "-", "--update"])
        .exits(2);
}

/// A stream has no results: it is no recording, and what to do instead is said.
#[test]
fn a_stream_is_refused_with_a_cure() {
    let stream = "data: {\"type\":\"message_start\",\"message\":{}}\n\n";
    for flags in [
        &[][..],
        &["--from", "anthropic-sse"],
        &["--from", "openai-sse"],
    ] {
        let ran = scene()
            .file("s.sse", stream)
            .run(&[&["replay", "s.sse"], flags].concat())
            .exits(2);
        assert!(ran.stderr.contains("a stream of events"), "{}", ran.stderr);
        assert!(ran.stderr.contains("plan"), "{}", ran.stderr);
    }
}
