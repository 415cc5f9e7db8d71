//! A session log as the input of another run.

use crate::stage::{Stage, callees, message};

/// What started and has no result is not repeated there either.
#[test]
fn what_had_started_is_not_repeated_by_another_run() {
    let stage = Stage::new(
        &callees(),
        &message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(stage.run().code, None);
    let done = stage
        .toolq(&["run", "--log", "other.jsonl", "log.jsonl"])
        .exits(3);
    assert!(!done.stdout.contains("toolu_0"), "it has its result");
    assert!(done.stdout.contains("In doubt: fatal") && done.stdout.contains("paid 3"));
    assert_eq!(stage.effects().len(), 3);
    let again = stage
        .toolq(&["run", "--resume", "--log", "other.jsonl", "log.jsonl"])
        .exits(3);
    assert_eq!(again.stdout, done.stdout);
    assert_eq!(stage.effects().len(), 3);
}

/// Somebody found out: then it is as that one says.
#[test]
fn what_was_resolved_counts() {
    for (verdict, text) in [
        (vec!["--done", "--result", "by hand"], None),
        (vec!["--not-done"], Some("done 2")),
    ] {
        let stage = Stage::new(&callees(), &message(&[("look", 1), ("fatal", 2)]));
        assert_eq!(stage.run().code, None);
        let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
        stage.toolq(&[&resolve[..], &verdict].concat()).exits(0);
        let done = stage.toolq(&["run", "--no-log", "log.jsonl"]);
        match text {
            Some(text) => assert!(done.exits(0).stdout.contains(text)),
            None => assert!(done.exits(5).stdout.is_empty()),
        }
    }
}

/// An input that is too large for a record stands beside the log, and is read from there.
#[test]
fn large_inputs_stand_beside_the_log() {
    let tools = "version: 1\ntools:\n  size:\n    input_schema: {type: object, properties: {t: {type: string}}, required: [t]}\n    command: {argv: [sh, -c, 'wc -c; echo ran >> effects'], stdin: \"{t}\"}\n";
    let text = "x".repeat(100_000);
    let block = serde_json::json!([{"type": "tool_use", "id": "toolu_0", "name": "size", "input": {"t": text}}]);
    let stage = Stage::new(tools, &block.to_string());
    stage.run().exits(0);
    let done = stage
        .toolq(&["run", "--all", "--no-log", "log.jsonl"])
        .exits(0);
    assert!(done.stdout.contains("100000"), "{}", done.stdout);
    assert_eq!(stage.effects().len(), 2);
    let folder = stage.path().join("log.jsonl.d");
    std::fs::remove_dir_all(folder).unwrap();
    let refused = stage
        .toolq(&["run", "--all", "--no-log", "log.jsonl"])
        .exits(2);
    assert!(refused.stderr.contains("log.jsonl.d"), "{}", refused.stderr);
    assert_eq!(stage.effects().len(), 2);
}
