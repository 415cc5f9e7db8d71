//! Which calls a replay runs, and how it ends.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::replay::{
    TOOLS, differences, ok_result, recorded_turn, replay, replay_sandbox, report_counts,
};
use crate::support::parse_json_lines;

#[test]
fn execute_chooses_which_tools_run() {
    let recording = recorded_turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            ok_result("so much depends\nupon"),
        ),
        ("b", "write", json!({"text": "x"}), ok_result("written")),
        ("c", "ask", json!({}), ok_result("a reply")),
    ]);
    for (execute, executed, trace) in [("none", 0, false), ("read", 1, false), ("all", 2, true)] {
        let ran = replay(&recording, &["--execute", execute]).assert_exit(0);
        assert_eq!(
            report_counts(&ran),
            [3, executed, 3 - executed, 3],
            "{execute}"
        );
        assert_eq!(ran.file("trace").is_some(), trace, "{execute}");
    }
}

#[test]
fn fail_fast_stops_after_the_first_turn_that_differs() {
    let differing = |id| {
        recorded_turn(&[
            (
                id,
                "read",
                json!({"path": "poem"}),
                ok_result("something else"),
            ),
            ("w", "write", json!({"text": "x"}), ok_result("written")),
        ])
    };
    let recording = [differing("a"), differing("b"), differing("c")].concat();
    let all = replay(&recording, &["--strict"]).assert_exit(1);
    assert_eq!((report_counts(&all)[0], differences(&all).len()), (6, 3));
    let first = replay(&recording, &["--strict", "--fail-fast"]).assert_exit(1);
    assert_eq!(
        (report_counts(&first)[0], differences(&first).len()),
        (2, 1)
    );
}

/// A log is only written with `--log`, and contains only the calls that ran.
#[test]
fn a_log_is_written_only_on_request() {
    let recording = recorded_turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            ok_result("so much depends\nupon"),
        ),
        ("b", "write", json!({"text": "x"}), ok_result("written")),
    ]);
    let ran = replay(&recording, &[]).assert_exit(0);
    assert!(ran.file("state/toolq").is_none() && !ran.dir.path().join("state").exists());
    let ran = replay(&recording, &["--log", "log.jsonl"]).assert_exit(0);
    let log = parse_json_lines(&ran.file("log.jsonl").unwrap());
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
fn a_budget_ends_the_replay() {
    let read = || {
        recorded_turn(&[(
            "a",
            "read",
            json!({"path": "poem"}),
            ok_result("so much depends\nupon"),
        )])
    };
    let ran = replay(&[read(), read(), read()].concat(), &["--max-calls", "1"]).assert_exit(3);
    assert_eq!(differences(&ran), []);
    assert_eq!(report_counts(&ran)[1], 1);
    // Otherwise a report without differences would be misleading.
    let warning = "the replay was stopped early: later calls were not compared";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
}

/// After a signal, the reports are still written, and calls that weren't reached aren't differences.
#[test]
fn a_signal_ends_the_replay_cleanly() {
    let tools = TOOLS.replace(
        r#"[cat, --, "{path}"]"#,
        r#"[sh, -c, 'touch "$1"; sleep 60', --, "{path}"]"#,
    );
    let recording = recorded_turn(&[("a", "read", json!({"path": "started"}), ok_result("x"))]);
    let sandbox = replay_sandbox().tools(&tools).file("r.jsonl", recording);
    let child = sandbox
        .command(&["replay", "r.jsonl", "--json", "-"])
        .spawn()
        .unwrap();
    while !sandbox.path().join("started").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["calls"], 1);
    assert_eq!(report["differ"], json!([]));
}
