use serde_json::{Value, json};

use crate::forge::Forge;
use crate::ran;
use crate::support::Toolq;

fn stats(log: &Forge) -> Value {
    let ran = Toolq::new()
        .file("log.jsonl", log.text())
        .run(&["log", "stats", "--format", "json", "log.jsonl"])
        .exits(0);
    ran.json()
}

#[test]
fn every_call_of_all_logs_is_counted_once() {
    let script = "cat > in; for log in a b; do \"$TOOLQ\" run -q --log $log < in > /dev/null; done; \"$TOOLQ\" log stats --format json a b";
    let stats = ran().shell(script).exits(0).json();
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
    assert_eq!(names, ["fail", "nobody", "say"]);
    assert_eq!(counts(&tools[0]), [2, 0, 2, 0, 0, 0, 0]);
    assert_eq!(counts(&tools[1]), [0, 0, 0, 0, 2, 0, 0]);
    assert_eq!(counts(&tools[2]), [4, 4, 0, 2, 0, 0, 0]);
    assert_eq!(counts(&stats["total"]), [6, 4, 2, 2, 2, 0, 0]);
    assert!(tools[1]["p95_ms"].is_null());
    assert!(tools[2]["max_ms"].as_u64() <= tools[2]["total_ms"].as_u64());
}

#[test]
fn the_table_is_for_people() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    for ms in 1..=20 {
        log.ran(turn, "read\u{1b}[31m", "ok", ms * 100);
    }
    log.ran(turn, "save", "failed", 4);
    log.session_end(session);
    let ran = Toolq::new()
        .file("log.jsonl", log.text())
        .run(&["log", "stats", "log.jsonl"])
        .exits(0);
    insta::assert_snapshot!(ran.stdout, @r"
    tool          runs  ok  failed  total  mean  p50   p95  max
    read\x1b[31m    20  20       0    21s  1.1s   1s  1.9s   2s
    save             1   0       1    4ms   4ms  4ms   4ms  4ms
    all             21  20       1    21s    1s   1s  1.9s   2s
    ");
}

/// What ended with its run, and what other tools rejected in between, is counted when no run goes on with it.
#[test]
fn a_call_that_runs_again_is_counted_once() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls = [(); 3].map(|()| log.call(turn, "look", &json!({})));
    for call in calls {
        log.start(call, "look", 1);
        log.end("tool_result", call, "look", ("interrupted", 40, 1));
    }
    log.end("tool_result", calls[1], "look", ("unknown_tool", 0, 0));
    let words = ["runs", "successes", "failures", "rejected", "total_ms"];
    let counts = |log: &Forge| words.map(|word| stats(log)["total"][word].as_u64().unwrap());
    assert_eq!(counts(&log), [2, 0, 2, 1, 80]);
    for call in &calls[1..] {
        log.start(*call, "look", 2);
        log.end("tool_result", *call, "look", ("ok", 3, 2));
    }
    assert_eq!(counts(&log), [3, 2, 1, 0, 46]);
}

/// A call is what it came to in the end: a resumed run goes on with what was skipped, and somebody may find out what
/// became of a call in doubt.
#[test]
fn the_last_word_counts() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (0..4).map(|_| log.call(turn, "pay", &json!({}))).collect();
    log.end("tool_skipped", calls[0], "pay", ("interrupted", 0, 0));
    log.start(calls[1], "pay", 1);
    log.end("tool_in_doubt", calls[1], "pay", ("in_doubt", 7, 1));
    log.start(calls[2], "pay", 1);
    log.start(calls[3], "pay", 1);
    let before = stats(&log)["total"].clone();
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
        log.add("resolve", Some(call), &json!("paid"), &metadata);
    }
    log.start(calls[2], "pay", 2);
    log.end("tool_result", calls[2], "pay", ("failed", 20, 1));
    log.session_end(session);
    let after = stats(&log)["total"].clone();
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
fn a_log_without_calls_has_no_numbers() {
    let mut log = Forge::new();
    let session = log.session();
    log.session_end(session);
    assert_eq!(stats(&log)["tools"], json!([]));
    let ran = Toolq::new()
        .file("log.jsonl", log.text())
        .run(&["log", "stats", "log.jsonl"]);
    assert_eq!(ran.exits(0).stdout, "no calls\n");
}
