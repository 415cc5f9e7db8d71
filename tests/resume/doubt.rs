//! A call that writes and was interrupted: in doubt, until somebody says what became of it.

use serde_json::json;

use crate::stage::{Stage, callees, message};

/// toolq was killed in the second of three calls.
fn killed() -> Stage {
    let stage = Stage::new(
        &callees(),
        &message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(stage.run().code, None, "it was killed");
    stage
}

/// FAULTS 118: answered so, not repeated, on every later run; what is missing runs.
#[test]
fn it_stays_in_doubt() {
    let stage = killed();
    let mut stdout = String::new();
    for round in 0..5 {
        let done = stage.resume().exits(3);
        assert!(done.texts()[1].starts_with("In doubt: fatal may have done its work"));
        assert_eq!([&done.texts()[0], &done.texts()[2]], ["looked 1", "paid 3"]);
        assert!(
            round == 0 || done.stdout == stdout,
            "FAULTS 117: printed from the log"
        );
        stdout = done.stdout;
    }
    let effects = stage.effects();
    assert_eq!(effects.len(), 3, "{effects:?}");
    let story = ["tool_call", "tool_start 1", "tool_in_doubt in_doubt"];
    assert_eq!(stage.story("toolu_1"), story);
    stage.log_is_in_order();
}

/// An unfinished log is no place for another run, unless somebody wants that.
#[test]
fn an_unfinished_log_is_refused() {
    let stage = killed();
    let refused = stage.run().exits(4);
    assert!(refused.stderr.contains("--resume") && refused.stderr.contains("--new"));
    assert!(refused.stdout.is_empty() && stage.effects().len() == 2);
    let new = stage.toolq(&["run", "--new", "--log", "log.jsonl", "input.json"]);
    let new = new.exits(0);
    assert_eq!(new.texts(), ["looked 1", "done 2", "paid 3"]);
    assert!(
        new.stderr
            .contains("left in doubt: toolu_1 (fatal). `toolq log resolve toolu_1 log.jsonl`"),
        "{}",
        new.stderr
    );
    // The run that is resumed from now on is the new one.
    let resumed = stage.resume().exits(0);
    assert_eq!(resumed.texts(), ["looked 1", "done 2", "paid 3"]);
    assert_eq!(stage.effects().len(), 5);
    let keys: Vec<String> = stage
        .effects()
        .iter()
        .filter_map(|line| line.strip_prefix("fatal 2 ").map(str::to_owned))
        .collect();
    assert_ne!(keys[0], keys[1], "FAULTS 101: another run is another task");
}

/// What another run was begun behind is not out of the world for that, and can be settled.
#[test]
fn a_doubt_of_an_earlier_run_is_not_forgotten() {
    let stage = killed();
    stage.write("other.json", &message(&[("look", 9)]));
    let next = |new: &[&str]| {
        let arguments = [&["run", "--log", "log.jsonl"], new, &["other.json"]].concat();
        stage.toolq(&arguments).exits(0).stderr
    };
    assert!(next(&["--new"]).contains("left in doubt: toolu_1 (fatal)"));
    assert!(next(&[]).contains("left in doubt: toolu_1 (fatal)"));
    let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
    let not_done = stage
        .toolq(&[&resolve[..], &["--not-done"]].concat())
        .exits(0);
    assert!(
        not_done.stderr.contains("another run was begun since"),
        "{}",
        not_done.stderr
    );
    let done = stage.toolq(&[&resolve[..], &["--done", "--result", "by hand"]].concat());
    assert!(done.exits(0).stderr.contains("has this result from now on"));
    assert!(!next(&[]).contains("doubt"));
    stage.log_is_in_order();
}

#[test]
fn done_gives_it_its_result() {
    for (error, is_error) in [(None, false), (Some("--error"), true)] {
        let stage = killed();
        let mut resolve = vec!["log", "resolve", "toolu_1", "log.jsonl", "--done"];
        resolve.extend(["--result", "paid: receipt 4711"]);
        resolve.extend(error);
        // Before the first resume as well as behind it.
        if is_error {
            stage.resume().exits(3);
        }
        let said = stage.toolq(&resolve).exits(0).stderr;
        assert!(
            said.contains("fatal toolu_1 has this result from now on"),
            "{said}"
        );
        let first = stage.resume().exits(0);
        assert_eq!(first.texts()[1], "paid: receipt 4711");
        let again = format!("\"paid: receipt 4711\",\"is_error\":{is_error}");
        assert!(first.stdout.contains(&again), "{}", first.stdout);
        assert_eq!(stage.resume().exits(0).stdout, first.stdout);
        assert_eq!(stage.effects().len(), 3);
        let twice = stage.toolq(&resolve).exits(2).stderr;
        assert!(twice.contains("was resolved already"), "{twice}");
        stage.log_is_in_order();
    }
}

/// The next attempt has the same key, so that a callee that did know the first can tell.
#[test]
fn not_done_runs_it_with_the_same_key() {
    let stage = killed();
    stage.resume().exits(3);
    let resolve = [
        "log",
        "resolve",
        "toolu_1",
        "log.jsonl",
        "--not-done",
        "--note",
        "asked the bank",
    ];
    stage.toolq(&resolve).exits(0);
    let done = stage.resume().exits(0);
    assert_eq!(done.texts(), ["looked 1", "done 2", "paid 3"]);
    let effects = stage.effects();
    let fatal: Vec<&String> = effects
        .iter()
        .filter(|line| line.starts_with("fatal"))
        .collect();
    assert_eq!(fatal.len(), 2, "{effects:?}");
    assert_eq!(fatal[0], fatal[1], "FAULTS 101: the key");
    let story = [
        "tool_call",
        "tool_start 1",
        "tool_in_doubt in_doubt",
        "resolve",
        "tool_start 2",
        "tool_result ok",
    ];
    assert_eq!(stage.story("toolu_1"), story);
    assert_eq!(stage.resume().exits(0).stdout, done.stdout);
    stage.log_is_in_order();
}

/// Who said that it was not done finds out better before it runs again.
#[test]
fn a_verdict_can_be_taken_back() {
    let stage = killed();
    let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
    let done = ["--done", "--result", "paid after all"];
    stage
        .toolq(&[&resolve[..], &["--not-done"]].concat())
        .exits(0);
    stage.toolq(&[&resolve[..], &done].concat()).exits(0);
    assert_eq!(stage.resume().exits(0).texts()[1], "paid after all");
    assert_eq!(stage.effects().len(), 3);
    stage.toolq(&["log", "verify", "log.jsonl"]).exits(0);
}

#[test]
fn only_what_is_in_doubt_can_be_resolved() {
    let stage = killed();
    let resolve = |id: &str, more: &[&str]| {
        stage.toolq(&[&["log", "resolve", id, "log.jsonl"], more].concat())
    };
    for (id, words) in [
        ("toolu_0", "has its result"),
        ("toolu_2", "was never started"),
        ("toolu_9", "has no call toolu_9"),
    ] {
        let refused = resolve(id, &["--not-done"]).exits(2).stderr;
        assert!(refused.contains(words), "{refused}");
    }
    let said = resolve("toolu_9", &["--not-done"]).stderr;
    let hint = " hint: what may be resolved in it: toolu_1 (fatal)\n";
    assert!(said.ends_with(hint), "{said}");
    resolve("toolu_1", &[]).exits(2);
    resolve("toolu_1", &["--done"]).exits(2);
    resolve("toolu_1", &["--not-done", "--result", "x"]).exits(2);
    let missing = stage.toolq(&["log", "resolve", "toolu_1", "none.jsonl", "--not-done"]);
    assert!(
        missing
            .exits(4)
            .stderr
            .contains("there is no session log none.jsonl")
    );
    assert!(!stage.path().join("none.jsonl").exists());
}

#[test]
fn a_log_without_doubt_has_nothing_to_resolve() {
    let stage = Stage::new(&callees(), &message(&[("look", 1)]));
    stage.run().exits(0);
    let resolve = ["log", "resolve", "zz", "log.jsonl", "--not-done"];
    let said = stage.toolq(&resolve).exits(2).stderr;
    let words = "error: the session log has no call zz\n hint: no call in it is in doubt\n";
    assert_eq!(said, words);
}

/// Recordings use ids again: then the record's own id says which call is meant.
#[test]
fn an_id_that_two_calls_have_is_ambiguous() {
    let turns = [message(&[("fatal", 1)]), message(&[("fatal", 2)])].join("\n");
    let stage = Stage::new(&callees(), &turns);
    assert_eq!(stage.run().code, None);
    std::fs::remove_file(stage.path().join("dead")).unwrap();
    assert_eq!(stage.resume().code, None);
    let refused = stage.toolq(&["log", "resolve", "toolu_0", "log.jsonl", "--not-done"]);
    let said = refused.exits(2).stderr;
    assert!(said.contains("more than one call"), "{said}");
    assert!(!said.contains("\\n") && said.lines().count() == 2, "{said}");
    assert!(said.contains(" (turn 1, call 0, fatal)"), "{said}");
    let calls: Vec<String> = stage
        .log()
        .iter()
        .filter(|record| record["type"] == "tool_call")
        .map(|record| record["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(calls.iter().all(|id| said.contains(id)), "{said}");
    let unknown = stage.toolq(&["log", "resolve", "zz", "log.jsonl", "--not-done"]);
    let said = unknown.exits(2).stderr;
    assert!(calls.iter().all(|id| said.contains(id)), "{said}");
    let second = ["log", "resolve", &calls[1], "log.jsonl", "--not-done"];
    stage.toolq(&second).exits(0);
    let done = stage.resume().exits(3);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(
        lines[0].contains("In doubt") && lines[1].contains("done 2"),
        "{lines:?}"
    );
}

/// Somebody's secret is in no log, not even where a person writes it.
#[test]
fn a_result_by_hand_is_masked() {
    let tools = callees().replace("version: 1", "version: 1\nsecrets: [TOKEN]");
    let stage = Stage::new(&tools, &message(&[("fatal", 1)]));
    assert_eq!(stage.run().code, None);
    let resolve = [
        "log",
        "resolve",
        "toolu_0",
        "log.jsonl",
        "--done",
        "--result",
        "by s3cr3t-t0ken",
    ];
    stage.with(&[("TOKEN", "s3cr3t-t0ken")], &resolve).exits(0);
    let resolved = stage.log().pop().unwrap();
    assert_eq!(resolved["content"], json!("by [masked]"));
}
