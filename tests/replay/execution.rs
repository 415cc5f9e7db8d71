//! What is run, how, and how a replay ends.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::json_lines;
use crate::{TOOLS, counts, differ, replay, says, scene, turn};

#[test]
fn who_is_run_is_chosen() {
    let recording = turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            says("so much depends\nupon"),
        ),
        ("b", "write", json!({"text": "x"}), says("written")),
        ("c", "ask", json!({}), says("an answer")),
    ]);
    for (execute, executed, trace) in [("none", 0, false), ("read", 1, false), ("all", 2, true)] {
        let ran = replay(&recording, &["--execute", execute]).exits(0);
        assert_eq!(counts(&ran), [3, executed, 3 - executed, 3], "{execute}");
        assert_eq!(ran.file("trace").is_some(), trace, "{execute}");
    }
}

#[test]
fn fail_fast_ends_with_the_turn() {
    let wrong = |id| {
        turn(&[
            (id, "read", json!({"path": "poem"}), says("something else")),
            ("w", "write", json!({"text": "x"}), says("written")),
        ])
    };
    let recording = [wrong("a"), wrong("b"), wrong("c")].concat();
    let all = replay(&recording, &[]).exits(1);
    assert_eq!((counts(&all)[0], differ(&all).len()), (6, 3));
    let first = replay(&recording, &["--fail-fast"]).exits(1);
    assert_eq!((counts(&first)[0], differ(&first).len()), (2, 1));
}

/// A log is kept where one is asked for, and it has what ran.
#[test]
fn a_log_is_kept_where_it_is_wanted() {
    let recording = turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            says("so much depends\nupon"),
        ),
        ("b", "write", json!({"text": "x"}), says("written")),
    ]);
    let ran = replay(&recording, &[]).exits(0);
    assert!(ran.file("state/toolq").is_none() && !ran.dir.path().join("state").exists());
    let ran = replay(&recording, &["--log", "log.jsonl"]).exits(0);
    let log = json_lines(&ran.file("log.jsonl").unwrap());
    let kinds: Vec<&str> = log
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "session",
            "turn",
            "tool_call",
            "tool_start",
            "tool_result",
            "session_end"
        ]
    );
}

#[test]
fn a_budget_ends_it() {
    let read = || {
        turn(&[(
            "a",
            "read",
            json!({"path": "poem"}),
            says("so much depends\nupon"),
        )])
    };
    let ran = replay(&[read(), read(), read()].concat(), &["--max-calls", "1"]).exits(3);
    assert_eq!(differ(&ran), []);
    assert_eq!(counts(&ran)[1], 1);
    // Otherwise "none differs" would look like the whole truth.
    let warned = "the replay was ended: what came behind was not compared";
    assert!(ran.stderr.contains(warned), "{}", ran.stderr);
}

/// A signal ends it in order: the reports are written, what was not reached is no difference.
#[test]
fn a_signal_ends_it() {
    let tools = TOOLS.replace(
        r#"[cat, --, "{path}"]"#,
        r#"[sh, -c, 'touch "$1"; sleep 60', --, "{path}"]"#,
    );
    let recording = turn(&[("a", "read", json!({"path": "started"}), says("x"))]);
    let scene = scene().tools(&tools).file("r.jsonl", recording);
    let child = scene
        .command(&["replay", "r.jsonl", "--json", "-"])
        .spawn()
        .unwrap();
    while !scene.path().join("started").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["calls"], 1);
    assert_eq!(report["differ"], json!([]));
}
