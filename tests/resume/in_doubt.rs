//! A call of a write tool that was killed is in doubt until it is resolved.

use serde_json::json;

use crate::resume_sandbox::{ResumeSandbox, calls_message, effect_recording_tools};

/// Returns a sandbox in which toolq was killed in the second of three calls.
fn killed_in_second_call() -> ResumeSandbox {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(sandbox.run().code, None, "the run must be killed");
    sandbox
}

/// Every resumed run returns the call as in doubt and doesn't repeat it. Missing calls run.
#[test]
fn an_interrupted_write_stays_in_doubt() {
    let sandbox = killed_in_second_call();
    let mut stdout = String::new();
    for round in 0..5 {
        let done = sandbox.resume().assert_exit(3);
        assert!(done.result_texts()[1].starts_with("In doubt: fatal may have done its work"));
        assert_eq!(
            [&done.result_texts()[0], &done.result_texts()[2]],
            ["looked 1", "paid 3"]
        );
        assert!(
            round == 0 || done.stdout == stdout,
            "the results must be printed from the log"
        );
        stdout = done.stdout;
    }
    let effects = sandbox.effects();
    assert_eq!(effects.len(), 3, "{effects:?}");
    let expected = ["tool_call", "tool_start 1", "tool_in_doubt in_doubt"];
    assert_eq!(sandbox.call_records("toolu_1"), expected);
    sandbox.assert_log_sequence();
}

/// Another run can be appended to an unfinished log only with `--new`.
#[test]
fn an_unfinished_log_is_refused() {
    let sandbox = killed_in_second_call();
    let refused = sandbox.run().assert_exit(4);
    assert!(refused.stderr.contains("--resume") && refused.stderr.contains("--new"));
    assert!(refused.stdout.is_empty() && sandbox.effects().len() == 2);
    let new = sandbox.run_toolq(&["run", "--new", "--log", "log.jsonl", "input.json"]);
    let new = new.assert_exit(0);
    assert_eq!(new.result_texts(), ["looked 1", "done 2", "paid 3"]);
    assert!(
        new.stderr
            .contains("left 1 call in doubt: toolu_1 (fatal); settle it with `toolq log resolve toolu_1 log.jsonl`"),
        "{}",
        new.stderr
    );
    // From now on, the new run is the one that is resumed.
    let resumed = sandbox.resume().assert_exit(0);
    assert_eq!(resumed.result_texts(), ["looked 1", "done 2", "paid 3"]);
    assert_eq!(sandbox.effects().len(), 5);
    let keys: Vec<String> = sandbox
        .effects()
        .iter()
        .filter_map(|line| line.strip_prefix("fatal 2 ").map(str::to_owned))
        .collect();
    assert_ne!(keys[0], keys[1], "another run needs another key");
}

/// A call in doubt is reported, and can be resolved, even if another run has started since.
#[test]
fn a_call_in_doubt_of_an_earlier_run_is_still_reported() {
    let sandbox = killed_in_second_call();
    sandbox.write_file("other.json", &calls_message(&[("look", 9)]));
    let next_run = |new: &[&str]| {
        let arguments = [&["run", "--log", "log.jsonl"], new, &["other.json"]].concat();
        sandbox.run_toolq(&arguments).assert_exit(0).stderr
    };
    assert!(next_run(&["--new"]).contains("left 1 call in doubt: toolu_1 (fatal)"));
    assert!(next_run(&[]).contains("left 1 call in doubt: toolu_1 (fatal)"));
    let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
    let not_done = sandbox
        .run_toolq(&[&resolve[..], &["--not-done"]].concat())
        .assert_exit(0);
    assert!(
        not_done.stderr.contains("another run has started since"),
        "{}",
        not_done.stderr
    );
    let done = sandbox.run_toolq(&[&resolve[..], &["--done", "--result", "by hand"]].concat());
    assert!(done.assert_exit(0).stderr.contains("now has this result"));
    assert!(!next_run(&[]).contains("doubt"));
    sandbox.assert_log_sequence();
}

#[test]
fn resolve_done_records_the_result() {
    for (error, is_error) in [(None, false), (Some("--error"), true)] {
        let sandbox = killed_in_second_call();
        let mut resolve = vec!["log", "resolve", "toolu_1", "log.jsonl", "--done"];
        resolve.extend(["--result", "paid: receipt 4711"]);
        resolve.extend(error);
        // Both before and after the first resume.
        if is_error {
            sandbox.resume().assert_exit(3);
        }
        let stderr = sandbox.run_toolq(&resolve).assert_exit(0).stderr;
        assert!(
            stderr.contains("fatal toolu_1 now has this result"),
            "{stderr}"
        );
        let first = sandbox.resume().assert_exit(0);
        assert_eq!(first.result_texts()[1], "paid: receipt 4711");
        let resolved = format!("\"paid: receipt 4711\",\"is_error\":{is_error}");
        assert!(first.stdout.contains(&resolved), "{}", first.stdout);
        assert_eq!(sandbox.resume().assert_exit(0).stdout, first.stdout);
        assert_eq!(sandbox.effects().len(), 3);
        let twice = sandbox.run_toolq(&resolve).assert_exit(2).stderr;
        assert!(twice.contains("is already resolved"), "{twice}");
        sandbox.assert_log_sequence();
    }
}

/// The next attempt has the same idempotency key, so that a service that did receive the first one recognizes it.
#[test]
fn resolve_not_done_runs_it_again_with_the_same_key() {
    let sandbox = killed_in_second_call();
    sandbox.resume().assert_exit(3);
    let resolve = [
        "log",
        "resolve",
        "toolu_1",
        "log.jsonl",
        "--not-done",
        "--note",
        "asked the bank",
    ];
    sandbox.run_toolq(&resolve).assert_exit(0);
    let done = sandbox.resume().assert_exit(0);
    assert_eq!(done.result_texts(), ["looked 1", "done 2", "paid 3"]);
    let effects = sandbox.effects();
    let fatal: Vec<&String> = effects
        .iter()
        .filter(|line| line.starts_with("fatal"))
        .collect();
    assert_eq!(fatal.len(), 2, "{effects:?}");
    assert_eq!(fatal[0], fatal[1], "the key must be the same");
    let expected = [
        "tool_call",
        "tool_start 1",
        "tool_in_doubt in_doubt",
        "resolve",
        "tool_start 2",
        "tool_result ok",
    ];
    assert_eq!(sandbox.call_records("toolu_1"), expected);
    assert_eq!(sandbox.resume().assert_exit(0).stdout, done.stdout);
    sandbox.assert_log_sequence();
}

/// A call that was resolved as not done can be resolved as done until it runs again.
#[test]
fn a_resolution_can_be_corrected() {
    let sandbox = killed_in_second_call();
    let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
    let done = ["--done", "--result", "paid after all"];
    sandbox
        .run_toolq(&[&resolve[..], &["--not-done"]].concat())
        .assert_exit(0);
    sandbox
        .run_toolq(&[&resolve[..], &done].concat())
        .assert_exit(0);
    assert_eq!(
        sandbox.resume().assert_exit(0).result_texts()[1],
        "paid after all"
    );
    assert_eq!(sandbox.effects().len(), 3);
    sandbox
        .run_toolq(&["log", "verify", "log.jsonl"])
        .assert_exit(0);
}

#[test]
fn only_calls_in_doubt_can_be_resolved() {
    let sandbox = killed_in_second_call();
    let resolve = |id: &str, flags: &[&str]| {
        sandbox.run_toolq(&[&["log", "resolve", id, "log.jsonl"], flags].concat())
    };
    for (id, message) in [
        ("toolu_0", "has its result"),
        ("toolu_2", "was never started"),
        ("toolu_9", "has no call toolu_9"),
    ] {
        let refused = resolve(id, &["--not-done"]).assert_exit(2).stderr;
        assert!(refused.contains(message), "{refused}");
    }
    let stderr = resolve("toolu_9", &["--not-done"]).stderr;
    let hint = " hint: calls that can be resolved: toolu_1 (fatal)\n";
    assert!(stderr.ends_with(hint), "{stderr}");
    resolve("toolu_1", &[]).assert_exit(2);
    resolve("toolu_1", &["--done"]).assert_exit(2);
    resolve("toolu_1", &["--not-done", "--result", "x"]).assert_exit(2);
    let missing = sandbox.run_toolq(&["log", "resolve", "toolu_1", "none.jsonl", "--not-done"]);
    assert!(
        missing
            .assert_exit(4)
            .stderr
            .contains("the session log none.jsonl doesn't exist")
    );
    assert!(!sandbox.path().join("none.jsonl").exists());
}

#[test]
fn a_log_without_calls_in_doubt_has_nothing_to_resolve() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&[("look", 1)]));
    sandbox.run().assert_exit(0);
    let resolve = ["log", "resolve", "zz", "log.jsonl", "--not-done"];
    let stderr = sandbox.run_toolq(&resolve).assert_exit(2).stderr;
    let error = "error: the session log has no call zz\n hint: no call in this log is in doubt\n";
    assert_eq!(stderr, error);
}

/// If two calls have the same ID, the ID of the call's record identifies it.
#[test]
fn an_id_of_two_calls_is_ambiguous() {
    let turns = [
        calls_message(&[("fatal", 1)]),
        calls_message(&[("fatal", 2)]),
    ]
    .join("\n");
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &turns);
    assert_eq!(sandbox.run().code, None);
    std::fs::remove_file(sandbox.path().join("dead")).unwrap();
    assert_eq!(sandbox.resume().code, None);
    let refused = sandbox.run_toolq(&["log", "resolve", "toolu_0", "log.jsonl", "--not-done"]);
    let stderr = refused.assert_exit(2).stderr;
    assert!(stderr.contains("more than one call"), "{stderr}");
    assert!(
        !stderr.contains("\\n") && stderr.lines().count() == 2,
        "{stderr}"
    );
    assert!(stderr.contains(" (turn 1, call 0, fatal)"), "{stderr}");
    let calls: Vec<String> = sandbox
        .log_records()
        .iter()
        .filter(|record| record["type"] == "tool_call")
        .map(|record| record["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(calls.iter().all(|id| stderr.contains(id)), "{stderr}");
    let unknown = sandbox.run_toolq(&["log", "resolve", "zz", "log.jsonl", "--not-done"]);
    let stderr = unknown.assert_exit(2).stderr;
    assert!(calls.iter().all(|id| stderr.contains(id)), "{stderr}");
    let second = ["log", "resolve", &calls[1], "log.jsonl", "--not-done"];
    sandbox.run_toolq(&second).assert_exit(0);
    let done = sandbox.resume().assert_exit(3);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(
        lines[0].contains("In doubt") && lines[1].contains("done 2"),
        "{lines:?}"
    );
}

/// Secrets in results that a user enters are masked too.
#[test]
fn a_resolved_result_is_masked() {
    let tools = effect_recording_tools().replace("version: 1", "version: 1\nsecrets: [TOKEN]");
    let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("fatal", 1)]));
    assert_eq!(sandbox.run().code, None);
    let resolve = [
        "log",
        "resolve",
        "toolu_0",
        "log.jsonl",
        "--done",
        "--result",
        "by s3cr3t-t0ken",
    ];
    sandbox
        .run_with_env(&[("TOKEN", "s3cr3t-t0ken")], &resolve)
        .assert_exit(0);
    let resolved = sandbox.log_records().pop().unwrap();
    assert_eq!(resolved["content"], json!("by [masked]"));
}
