//! `toolq log stats`.

use serde_json::{Value, json};

use crate::log::log_builder::LogBuilder;
use crate::log::sandbox_with_five_calls;
use crate::support::CliSandbox;

fn run_stats(log: &LogBuilder) -> Value {
    let ran = CliSandbox::new()
        .file("log.jsonl", log.text())
        .run(&["log", "stats", "--format", "json", "log.jsonl"])
        .assert_exit(0);
    ran.json()
}

#[test]
fn every_call_of_all_logs_is_counted_once() {
    let script = "cat > in; for log in a b; do \"$TOOLQ\" run -q --log $log < in > /dev/null; done; \"$TOOLQ\" log stats --format json a b";
    let stats = sandbox_with_five_calls()
        .run_shell(script)
        .assert_exit(0)
        .json();
    let counts = |tool: &Value| {
        let names = [
            "runs",
            "successes",
            "failures",
            "skipped",
            "rejected",
            "in_doubt",
            "unfinished",
        ];
        names.map(|name| tool[name].as_u64().unwrap())
    };
    let tools = stats["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["tool_name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fail", "missing", "say"]);
    assert_eq!(counts(&tools[0]), [2, 0, 2, 0, 0, 0, 0]);
    assert_eq!(counts(&tools[1]), [0, 0, 0, 0, 2, 0, 0]);
    assert_eq!(counts(&tools[2]), [4, 4, 0, 2, 0, 0, 0]);
    assert_eq!(counts(&stats["total"]), [6, 4, 2, 2, 2, 0, 0]);
    assert!(tools[1]["p95_ms"].is_null());
    assert!(tools[2]["max_ms"].as_u64() <= tools[2]["total_ms"].as_u64());
}

#[test]
fn stats_are_a_table_by_default() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    for ms in 1..=20 {
        log.finished_call(turn, "read\u{1b}[31m", "ok", ms * 100);
    }
    log.finished_call(turn, "save", "failed", 4);
    log.session_end(session);
    let ran = CliSandbox::new()
        .file("log.jsonl", log.text())
        .run(&["log", "stats", "log.jsonl"])
        .assert_exit(0);
    insta::assert_snapshot!(ran.stdout, @r"
    tool          runs  ok  failed  total  mean  p50   p95  max
    read\x1b[31m    20  20       0    21s  1.1s   1s  1.9s   2s
    save             1   0       1    4ms   4ms  4ms   4ms  4ms
    all             21  20       1    21s    1s   1s  1.9s   2s
    ");
}

/// An interrupted or rejected call is counted as such only until a resumed run finishes it.
#[test]
fn a_call_that_runs_again_is_counted_once() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls = [(); 3].map(|()| log.call(turn, "look", &json!({})));
    for call in calls {
        log.start(call, "look", 1);
        log.end("tool_result", call, "look", ("interrupted", 40, 1));
    }
    log.end("tool_result", calls[1], "look", ("unknown_tool", 0, 0));
    let keys = ["runs", "successes", "failures", "rejected", "total_ms"];
    let counts = |log: &LogBuilder| keys.map(|key| run_stats(log)["total"][key].as_u64().unwrap());
    assert_eq!(counts(&log), [2, 0, 2, 1, 80]);
    for call in &calls[1..] {
        log.start(*call, "look", 2);
        log.end("tool_result", *call, "look", ("ok", 3, 2));
    }
    assert_eq!(counts(&log), [3, 2, 1, 0, 46]);
}

/// A call counts by its final state: a resumed run may finish a skipped call, and a call in doubt may be resolved.
#[test]
fn the_final_state_of_a_call_counts() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (0..4).map(|_| log.call(turn, "pay", &json!({}))).collect();
    log.end("tool_skipped", calls[0], "pay", ("interrupted", 0, 0));
    log.start(calls[1], "pay", 1);
    log.end("tool_in_doubt", calls[1], "pay", ("in_doubt", 7, 1));
    log.start(calls[2], "pay", 1);
    log.start(calls[3], "pay", 1);
    let before = run_stats(&log)["total"].clone();
    assert_eq!(
        (&before["skipped"], &before["in_doubt"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        (&before["runs"], &before["unfinished"]),
        (&json!(3), &json!(2))
    );
    assert!(before["total_ms"].is_null());

    let session = log.session();
    log.start(calls[0], "pay", 1);
    log.end("tool_result", calls[0], "pay", ("ok", 10, 1));
    for (call, done) in [(calls[1], true), (calls[2], false)] {
        let metadata = json!({"tool_use_id": "x", "tool_name": "pay", "done": done});
        log.add_record("resolve", Some(call), &json!("paid"), &metadata);
    }
    log.start(calls[2], "pay", 2);
    log.end("tool_result", calls[2], "pay", ("failed", 20, 1));
    log.session_end(session);
    let after = run_stats(&log)["total"].clone();
    let counts = [
        "runs",
        "successes",
        "failures",
        "in_doubt",
        "unfinished",
        "skipped",
    ];
    assert_eq!(
        counts.map(|name| after[name].as_u64().unwrap()),
        [4, 2, 1, 0, 1, 0]
    );
    assert_eq!(after["total_ms"], 30);
}

#[test]
fn a_log_without_calls_has_no_stats() {
    let mut log = LogBuilder::new();
    let session = log.session();
    log.session_end(session);
    assert_eq!(run_stats(&log)["tools"], json!([]));
    let ran = CliSandbox::new()
        .file("log.jsonl", log.text())
        .run(&["log", "stats", "log.jsonl"]);
    assert_eq!(ran.assert_exit(0).stdout, "no calls\n");
}
