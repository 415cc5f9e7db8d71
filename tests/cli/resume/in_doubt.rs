//! A call of a write tool that was killed is in doubt until it is resolved.

use crate::support::resume_sandbox::{
    ResumeSandbox, calls_message, effect_recording_tools, shell_tools,
};

/// Returns a sandbox in which toolq was killed in the second of three calls.
fn killed_in_second_call() -> ResumeSandbox {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(sandbox.run().code, None, "the run must be killed");
    sandbox
}

/// Every further run returns the call as in doubt and doesn't repeat it. Missing calls run.
#[test]
fn an_interrupted_write_stays_in_doubt() {
    let sandbox = killed_in_second_call();
    let mut stdout = String::new();
    for round in 0..5 {
        let done = sandbox.run().assert_exit(3);
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
    let records = sandbox.call_records("toolu_1");
    assert_eq!(records[..2], ["tool_call", "tool_start 1"]);
    assert_eq!(records[2..4], ["tool_call", "tool_in_doubt in_doubt"]);
    assert_eq!(records.len(), 2 + 2 * 5);
    sandbox.assert_log_sequence();
}

/// What was found out later stands in the memory, and every log that says in doubt is shown with it.
#[test]
fn a_log_is_shown_with_what_was_said_later() {
    let input = calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    assert_eq!(sandbox.run_toolq(&["run", "input.json"]).code, None);
    let doubted = sandbox
        .run_toolq(&["run", "-q", "input.json"])
        .assert_exit(3);
    let (_, command) = doubted.stderr.split_once("`toolq ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let resolve = command
        .split(' ')
        .chain(["--done", "--result", "sent", "--note", "by phone"]);
    sandbox
        .run_toolq(&resolve.collect::<Vec<_>>())
        .assert_exit(0);
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
    let list = sandbox
        .run_toolq(&["log", "list", "--format", "json"])
        .assert_exit(0)
        .stdout;
    let sessions = crate::support::parse_json_lines(&list);
    assert_eq!(sessions.len(), 3, "{list}");
    for session in sessions {
        let id = session["id"].as_str().unwrap();
        let whole = ["log", "show", "--id", "toolu_1"];
        for arguments in [&whole[..2], &whole].map(|words| [words, &[id]].concat()) {
            let shown = sandbox.run_toolq(&arguments).assert_exit(0).stdout;
            let line = shown.lines().map(str::trim_start);
            let line = line
                .rev()
                .find(|line| line.starts_with("resolved fatal toolu_1 "));
            // The last run has its result.
            assert_eq!(line.is_some(), session["state"] != "finished", "{shown}");
            let said = ": done with the result \"sent\" (by phone)";
            assert!(line.is_none_or(|line| line.ends_with(said)), "{shown}");
        }
    }
}

/// `-q` leaves out what nobody has to act on.
#[test]
fn a_quiet_run_says_how_to_settle_a_call() {
    let sandbox = killed_in_second_call();
    let quiet = ["run", "-q", "--log", "log.jsonl", "input.json"];
    let stderr = sandbox.run_toolq(&quiet).assert_exit(3).stderr;
    assert!(
        stderr.starts_with("warning: in doubt: fatal toolu_1")
            && stderr.contains("`toolq log resolve ")
            && stderr.lines().count() == 1,
        "{stderr}"
    );
}

/// Calls after one in doubt may build on it, so they wait until it is settled.
#[test]
fn calls_after_a_call_in_doubt_dont_run() {
    let stopping = effect_recording_tools().replace("on_doubt: continue", "on_doubt: stop");
    let unnamed = effect_recording_tools().replace("on_doubt: continue", "on_failure: continue");
    for tools in [stopping, unnamed] {
        let input = calls_message(&[("look", 1), ("fatal", 2), ("look", 3), ("pay", 4)]);
        let sandbox = ResumeSandbox::new(&tools, &input);
        assert_eq!(sandbox.run().code, None);
        for _ in 0..2 {
            let stopped = sandbox.run().assert_exit(3).result_texts();
            assert_eq!(stopped[0], "looked 1");
            assert!(stopped[1].starts_with("In doubt: fatal"));
            for text in &stopped[2..] {
                let expected =
                    "Not executed: whether the preceding fatal call happened is not known.";
                assert!(text.starts_with(expected), "{text}");
            }
        }
        assert_eq!(sandbox.effects().len(), 2);
        sandbox
            .run_toolq(&[
                "log",
                "resolve",
                "toolu_1",
                "log.jsonl",
                "--done",
                "--result",
                "checked",
            ])
            .assert_exit(0);
        let finished = sandbox.run().assert_exit(0).result_texts();
        assert_eq!(finished, ["looked 1", "checked", "looked 3", "paid 4"]);
        sandbox.assert_log_sequence();
    }
}

/// The people who have to settle a call read which one it is, and what to type.
#[test]
fn a_call_in_doubt_is_named_with_the_command_that_settles_it() {
    let sandbox = killed_in_second_call();
    let resumed = sandbox.run().assert_exit(3).stderr;
    let doubt = "in doubt: fatal toolu_1, started 20";
    assert!(resumed.contains(doubt), "{resumed}");
    let shown = sandbox.run_toolq(&["log", "show", "log.jsonl"]);
    let shown = shown.assert_exit(0).stdout;
    let doubt = "in doubt: fatal toolu_1 {\"n\":2}, started 20";
    assert!(shown.contains(doubt), "{shown}");
    let is_settling = |line: &&str| line.starts_with("  toolq log resolve ");
    let commands: Vec<&str> = shown.lines().filter(is_settling).collect();
    let (done, not_done) = (commands[0], commands[1]);
    assert!(done.ends_with(" log.jsonl --done --result TEXT"), "{shown}");
    assert!(not_done.ends_with(" log.jsonl --not-done"), "{shown}");
    // The key is named, since another call may have this id.
    let key = not_done.split_whitespace().nth(3).unwrap();
    assert!(
        resumed.contains(&format!("`toolq log resolve {key} log.jsonl`")),
        "{resumed}"
    );
    sandbox
        .run_toolq(&["log", "resolve", key, "log.jsonl", "--not-done"])
        .assert_exit(0);
    let settled = sandbox.run().assert_exit(0);
    assert!(!settled.stderr.contains("in doubt"), "{}", settled.stderr);
}

/// A write that a signal, a budget or a sibling's failure cuts off may have done its work, just as one that was killed.
#[test]
fn a_write_that_is_cut_off_is_in_doubt_in_the_run_that_cuts_it_off() {
    let interrupting = r#"echo "cut $1" >> effects; kill -INT "$(cat pid)"; sleep 60"#;
    let waiting = r#"echo "cut $1" >> effects; sleep 60"#;
    let failing = r"while ! test -s effects; do sleep 0.01; done; exit 1";
    let write = "effect: write\n    concurrency_safe: true";
    let cases = [
        (
            write,
            interrupting,
            &[][..],
            130,
            "the run was stopped from outside",
        ),
        (
            write,
            waiting,
            &["--time-budget", "1s"],
            3,
            "this run's time budget of 1s is used up",
        ),
        (write, waiting, &[], 3, "the parallel fail call failed"),
    ];
    for (keys, script, flags, code, cause) in cases {
        let fails = cause.contains("parallel");
        let tools = shell_tools(&[
            ("cut", keys, script),
            (
                "fail",
                "effect: read\n    on_failure: cancel_siblings",
                failing,
            ),
            ("look", "effect: read", "echo looked"),
            ("later", "effect: write", "echo later"),
        ]);
        let second = if fails { "fail" } else { "look" };
        let calls = [("cut", 1), (second, 2), ("later", 3)];
        let sandbox = ResumeSandbox::new(&tools, &calls_message(&calls));
        let arguments = [
            &["run", "--log", "log.jsonl"],
            flags,
            &["-j", "2", "input.json"],
        ]
        .concat();
        let cut = sandbox.run_toolq(&arguments).assert_exit(code);
        let texts = cut.result_texts();
        assert!(
            texts[0].starts_with(&format!(
                "In doubt: cut may have done its work: {cause}, and no complete result had arrived."
            )),
            "{texts:?}"
        );
        assert!(texts[2].starts_with("Not executed"), "{texts:?}");
        assert!(
            cut.stderr.contains("in doubt: cut toolu_0"),
            "{}",
            cut.stderr
        );
        let records = sandbox.call_records("toolu_0");
        assert_eq!(records.last().unwrap(), "tool_in_doubt in_doubt");
        sandbox.assert_log_sequence();
        let resumed = sandbox.run().assert_exit(3);
        assert!(resumed.result_texts()[0].starts_with("In doubt: cut"));
        assert_eq!(
            sandbox
                .effects()
                .iter()
                .filter(|effect| *effect == "cut 1")
                .count(),
            1
        );
    }
}

/// A timeout is an answer: the tool itself ended the call. The text says that part of the work may be done.
#[test]
fn a_write_that_times_out_has_its_answer() {
    let tools = shell_tools(&[(
        "slow",
        "timeout: {after: 100ms, grace: 100ms}",
        r#"echo "slow $1" >> effects; sleep 60"#,
    )]);
    let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("slow", 1)]));
    let timed_out = sandbox.run().assert_exit(0);
    assert!(
        timed_out.result_texts()[0].contains("it may have done part of its work"),
        "{:?}",
        timed_out.result_texts()
    );
    assert_eq!(sandbox.run().assert_exit(0).stdout, timed_out.stdout);
    assert_eq!(sandbox.effects().len(), 1);
}

#[test]
fn resolve_done_records_the_result() {
    for (error, is_error) in [(None, false), (Some("--error"), true)] {
        let sandbox = killed_in_second_call();
        let mut resolve = vec!["log", "resolve", "toolu_1", "log.jsonl", "--done"];
        resolve.extend(["--result", "paid: receipt 4711"]);
        resolve.extend(error);
        // Both before and after another run has said in doubt.
        if is_error {
            sandbox.run().assert_exit(3);
        }
        let stderr = sandbox.run_toolq(&resolve).assert_exit(0).stderr;
        assert!(
            stderr.contains("fatal toolu_1 has this result now"),
            "{stderr}"
        );
        let first = sandbox.run().assert_exit(0);
        assert_eq!(first.result_texts()[1], "paid: receipt 4711");
        let resolved = format!("\"paid: receipt 4711\",\"is_error\":{is_error}");
        assert!(first.stdout.contains(&resolved), "{}", first.stdout);
        assert_eq!(sandbox.run().assert_exit(0).stdout, first.stdout);
        assert_eq!(sandbox.effects().len(), 3);
        let twice = sandbox.run_toolq(&resolve).assert_exit(2).stderr;
        assert!(twice.contains("was settled already, as done"), "{twice}");
        sandbox.assert_log_sequence();
    }
}

/// The next attempt has the same idempotency key, so that a service that did receive the first one recognizes it.
#[test]
fn resolve_not_done_runs_it_again_with_the_same_key() {
    let sandbox = killed_in_second_call();
    sandbox.run().assert_exit(3);
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
    let done = sandbox.run().assert_exit(0);
    assert_eq!(done.result_texts(), ["looked 1", "done 2", "paid 3"]);
    let effects = sandbox.effects();
    let fatal: Vec<&String> = effects
        .iter()
        .filter(|line| line.starts_with("fatal"))
        .collect();
    assert_eq!(fatal.len(), 2, "{effects:?}");
    assert_eq!(fatal[0], fatal[1], "the key must be the same");
    let expected = ["tool_call", "tool_start 1", "tool_result ok"];
    let records = sandbox.call_records("toolu_1");
    assert_eq!(records[records.len() - 3..], expected);
    assert_eq!(sandbox.run().assert_exit(0).stdout, done.stdout);
    sandbox.assert_log_sequence();
}

/// What was said first counts, and who comes second reads it.
#[test]
fn the_first_who_settles_a_call_is_right() {
    let sandbox = killed_in_second_call();
    let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
    let not_done = [&resolve[..], &["--not-done"]].concat();
    sandbox.run_toolq(&not_done).assert_exit(0);
    let done = ["--done", "--result", "paid after all"];
    let second = sandbox.run_toolq(&[&resolve[..], &done].concat());
    let second = second.assert_exit(2).stderr;
    assert!(
        second.contains("was settled already, as not done"),
        "{second}"
    );
    assert_eq!(sandbox.run().assert_exit(0).result_texts()[1], "done 2");
    sandbox
        .run_toolq(&["log", "verify", "log.jsonl"])
        .assert_exit(0);
}

/// `log resolve` exits with 2 and says why.
#[test]
fn only_calls_in_doubt_can_be_resolved() {
    let sandbox = killed_in_second_call();
    let resolve = |id: &str, flags: &[&str]| {
        sandbox.run_toolq(&[&["log", "resolve", id, "log.jsonl"], flags].concat())
    };
    for (id, message) in [
        ("toolu_2", "no call toolu_2 is in doubt"),
        ("toolu_9", "no call toolu_9 is in doubt"),
    ] {
        let refused = resolve(id, &["--not-done"]).assert_exit(2).stderr;
        assert!(refused.contains(message), "{refused}");
    }
    let stderr = resolve("toolu_9", &["--not-done"]).stderr;
    assert!(stderr.contains(" hint: calls in doubt: "), "{stderr}");
    resolve("toolu_1", &[]).assert_exit(2);
    resolve("toolu_1", &["--done"]).assert_exit(2);
    resolve("toolu_1", &["--not-done", "--result", "x"]).assert_exit(2);
    let missing = ["log", "resolve", "toolu_1", "none.jsonl", "--not-done"];
    sandbox.run_toolq(&missing).assert_exit(4);
    assert!(!sandbox.path().join("none.jsonl").exists());
}

#[test]
fn a_log_without_calls_in_doubt_has_nothing_to_resolve() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&[("look", 1)]));
    sandbox.run().assert_exit(0);
    let resolve = ["log", "resolve", "zz", "log.jsonl", "--not-done"];
    let stderr = sandbox.run_toolq(&resolve).assert_exit(2).stderr;
    let error = "error: no call zz is in doubt\n hint: no call is in doubt here\n";
    assert_eq!(stderr, error);
}

/// If two calls have the same id, their keys tell them apart.
#[test]
fn an_id_of_two_calls_is_ambiguous() {
    let turns = [("fatal", 1), ("fatal", 2)].map(|call| calls_message(&[call]));
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &turns.join("\n"));
    assert_eq!(sandbox.run().code, None);
    std::fs::remove_file(sandbox.path().join("dead")).unwrap();
    assert_eq!(sandbox.run().code, None);
    let settle = |id: &str| sandbox.run_toolq(&["log", "resolve", id, "log.jsonl", "--not-done"]);
    let refused = settle("toolu_0").assert_exit(2).stderr;
    let (_, keys) = refused
        .trim_end()
        .split_once("hint: name one of them: ")
        .unwrap();
    let keys: Vec<&str> = keys.split(", ").collect();
    assert_eq!(keys.len(), 2, "{refused}");
    settle(keys[1]).assert_exit(0);
    let done = sandbox.run().assert_exit(3);
    let in_doubt = done.stdout.matches("In doubt").count();
    assert_eq!(
        (in_doubt, done.stdout.matches("done 2").count()),
        (1, 1),
        "{}",
        done.stdout
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
    let settled = sandbox.run_with_env(
        &[("TOKEN", "s3cr3t-t0ken")],
        &["run", "--log", "log.jsonl", "input.json"],
    );
    assert_eq!(settled.assert_exit(0).result_texts(), ["by [masked]"]);
    let entries = std::fs::read_dir(sandbox.path().join("log.jsonl.d")).unwrap();
    for entry in entries {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
