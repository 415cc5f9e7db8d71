//! `toolq log diff`.

use serde_json::{Value, json};

use crate::log::log_builder::LogBuilder;
use crate::support::{CliOutput, CliSandbox};

/// A log with these calls: the tool, its input, its result, and how long it took in milliseconds.
fn log_of(calls: &[(&str, Value, &str, u64)]) -> String {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    for (tool, input, result, ms) in calls {
        let call = log.call(turn, tool, input);
        log.start(call, tool, 1);
        log.result(call, tool, *ms, &json!(result));
    }
    log.session_end(session);
    log.text().to_owned()
}

fn diff(before: &str, after: &str, arguments: &[&str]) -> CliOutput {
    let sandbox = CliSandbox::new()
        .file("before.jsonl", before)
        .file("after.jsonl", after);
    sandbox.run(&[&["log", "diff", "before.jsonl", "after.jsonl"], arguments].concat())
}

#[test]
fn every_kind_of_difference_has_a_line() {
    let before = log_of(&[
        ("read", json!({"path": "a"}), "one", 5),
        ("read", json!({"path": "gone"}), "two", 5),
        ("lint", json!({"file": "x"}), "all good", 5),
        ("edit", json!({"file": "a"}), "done", 5),
    ]);
    let after = log_of(&[
        ("read", json!({"path": "a"}), "one", 5),
        ("lint", json!({"file": "x"}), "2 warnings", 5),
        ("edit", json!({"file": "b"}), "done", 5),
        ("pay", json!({}), "paid", 5),
    ]);
    let ran = diff(&before, &after, &[]).assert_exit(1);
    assert_eq!(
        ran.stdout,
        concat!(
            "before.jsonl → after.jsonl\n",
            "- missing: read {\"path\":\"gone\"} (turn 0)\n",
            "~ other result: lint {\"file\":\"x\"}: all good → 2 warnings\n",
            "~ other input: edit {\"file\":\"a\"} → {\"file\":\"b\"}\n",
            "+ added: pay {} (turn 0)\n",
        )
    );
    assert!(
        ran.stderr
            .contains("4 calls and 4 calls: 1 same, 1 missing, 1 added, 2 changed"),
        "{}",
        ran.stderr
    );
    let kinds: Vec<Value> = diff(&before, &after, &["--format", "json"])
        .lines()
        .iter()
        .map(|line| line["kind"].clone())
        .collect();
    assert_eq!(kinds, ["missing", "result", "input", "added"]);
}

/// Records can be written later than things happened; the recorded duration counts.
#[test]
fn a_slower_call_is_named_and_is_no_difference() {
    let log = |ms| log_of(&[("nap", json!({}), "awake", ms)]);
    let ran = diff(&log(20), &log(520), &[]).assert_exit(0);
    assert_eq!(
        ran.stdout,
        "before.jsonl → after.jsonl\n> slower: nap {}: 20ms → 520ms\n"
    );
    assert!(
        ran.stderr.contains("1 call and 1 call: 0 same, 1 slower"),
        "{}",
        ran.stderr
    );
}

#[test]
fn hidden_characters_are_escaped() {
    let before = log_of(&[("read\u{1b}[31m", json!({"path": "\u{202e}"}), "x", 5)]);
    let ran = diff(&before, &log_of(&[]), &[]).assert_exit(1);
    assert!(
        !ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{202e}'),
        "{}",
        ran.stdout
    );
}
