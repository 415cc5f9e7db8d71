//! Resuming with an input, a tools.yaml or a directory that has changed.

use serde_json::json;

use crate::support::resume_sandbox::{
    ResumeSandbox, calls_message, effect_recording_tools, message_stream, shell_tools,
};

/// If a logged call has another tool or input now, nothing runs, not even missing calls.
#[test]
fn a_different_call_at_the_same_position_is_a_conflict() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("pay", 2), ("fatal", 3)]),
    );
    assert_eq!(sandbox.run().code, None);
    let before = sandbox.read_file("log.jsonl");
    for (calls, message) in [
        (
            [("look", 1), ("pay", 20), ("fatal", 3), ("look", 4)],
            r#"turn 0, call 1: the session log has pay {"n":2}, the input has pay {"n":20}"#,
        ),
        (
            [("look", 1), ("keep", 2), ("fatal", 3), ("look", 4)],
            r#"the session log has pay {"n":2}, the input has keep {"n":2}"#,
        ),
        (
            [("pay", 2), ("look", 1), ("fatal", 3), ("look", 4)],
            r#"turn 0, call 0: the session log has look {"n":1}, the input has pay {"n":2}"#,
        ),
    ] {
        sandbox.write_file("input.json", &calls_message(&calls));
        let refused = sandbox.resume().assert_exit(2);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
        assert!(refused.stdout.is_empty());
    }
    assert_eq!(
        sandbox.read_file("log.jsonl"),
        before,
        "nothing may be written"
    );
    assert_eq!(sandbox.effects().len(), 3);
}

/// An input that repeats the calls of a finished run continues it, even if its bytes differ.
#[test]
fn calls_may_be_added_or_removed() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("pay", 2)]),
    );
    sandbox.run().assert_exit(0);
    let more_calls = calls_message(&[("look", 1), ("pay", 2), ("pay", 3)]);
    sandbox.write_file("input.json", &more_calls);
    let done = sandbox.resume().assert_exit(0);
    assert_eq!(done.result_texts(), ["looked 1", "paid 2", "paid 3"]);
    assert_eq!(sandbox.effects(), ["look 1", "pay 2", "pay 3"]);
    sandbox.write_file("input.json", &calls_message(&[("look", 1)]));
    let arguments = ["run", "-v", "--resume", "--log", "log.jsonl", "input.json"];
    let fewer = sandbox.run_toolq(&arguments).assert_exit(0);
    assert_eq!(fewer.result_texts(), ["looked 1"]);
    assert!(
        fewer
            .stderr
            .contains("2 calls of the log are not in this input"),
        "{}",
        fewer.stderr
    );
    sandbox.assert_log_sequence();
}

/// A run that ended can leave a call in doubt, too. If the input repeats that call, a new run would repeat its effect.
#[test]
fn an_ended_run_is_not_begun_anew_if_only_another_call_has_changed() {
    let calls = calls_message(&[("pay", 1), ("look", 2)]);
    let other_calls = calls_message(&[("pay", 1), ("look", 3)]);
    let as_stream = |message: &String| message_stream(std::slice::from_ref(message));
    for (from, input, other_input) in [
        ("anthropic", calls.clone(), other_calls.clone()),
        ("anthropic-sse", as_stream(&calls), as_stream(&other_calls)),
    ] {
        let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
        let run = ["run", "--log", "log.jsonl", "--from", from, "input.json"];
        sandbox.run_toolq(&run).assert_exit(0);
        sandbox.write_file("input.json", &other_input);
        let resume = [&run[..], &["--resume"]].concat();
        let refused = sandbox.run_toolq(&resume).assert_exit(2);
        let conflict = r#"the session log has look {"n":2}, the input has look {"n":3}"#;
        assert!(refused.stderr.contains(conflict), "{}", refused.stderr);
        assert_eq!(sandbox.effects(), ["pay 1", "look 2"], "{from}");
    }
}

/// With new ids only, it's another run; with some new ids, the calls that kept theirs would run twice.
#[test]
fn an_ended_run_is_not_begun_anew_if_only_some_ids_have_changed() {
    let input = calls_message(&[("pay", 1), ("pay", 2)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    sandbox.run().assert_exit(0);
    sandbox.write_file("input.json", &input.replace("toolu_0", "toolu_new"));
    let refused = sandbox.resume().assert_exit(2).stderr;
    assert!(
        refused.contains("beside others that are the same but have new ids"),
        "{refused}"
    );
    assert_eq!(sandbox.effects(), ["pay 1", "pay 2"]);
    sandbox.write_file("input.json", &input.replace("toolu_", "new_"));
    sandbox.resume().assert_exit(0);
    assert_eq!(sandbox.effects().len(), 4);
}

/// The place of a call in doubt doesn't matter, nor that another call is new.
#[test]
fn a_call_in_doubt_is_not_begun_anew_in_another_place() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("pay", 1), ("fatal", 2)]),
    );
    assert_eq!(sandbox.run().code, None);
    sandbox.resume().assert_exit(3);
    let effects = sandbox.effects();
    let moved = calls_message(&[("fatal", 2)]).replace("toolu_0", "toolu_1");
    sandbox.write_file("input.json", &moved);
    let run = ["run", "--log", "log.jsonl", "input.json"];
    for arguments in [&run[..], &[&run[..], &["--resume"]].concat()] {
        let refused = sandbox.run_toolq(arguments).assert_exit(4);
        for text in [
            "left toolu_1 (fatal) in doubt, and this run would repeat it",
            "`toolq log resolve toolu_1 log.jsonl`, adding `--done",
        ] {
            assert!(refused.stderr.contains(text), "{}", refused.stderr);
        }
    }
    assert_eq!(sandbox.effects(), effects);
    let resolve = [
        "log",
        "resolve",
        "toolu_1",
        "log.jsonl",
        "--done",
        "--result",
        "by hand",
    ];
    sandbox.run_toolq(&resolve).assert_exit(0);
    // Now it is another request.
    sandbox.run_toolq(&run).assert_exit(0);
    assert!(sandbox.effects().len() > effects.len());
}

/// `--resume` begins a run for another input, but the call must not be forgotten.
#[test]
fn a_run_that_resume_begins_warns_of_an_earlier_call_in_doubt() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("pay", 1), ("fatal", 2)]),
    );
    assert_eq!(sandbox.run().code, None);
    sandbox.resume().assert_exit(3);
    sandbox.write_file("input.json", &calls_message(&[("look", 3)]));
    let next = sandbox.resume().assert_exit(0);
    let warning = "left 1 call in doubt: toolu_1 (fatal)";
    assert!(next.stderr.contains(warning), "{}", next.stderr);
}

/// A new turn of an agent repeats nothing, even if its API numbers calls anew in each response.
#[test]
fn a_new_input_with_the_same_ids_begins_a_run() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("pay", 2)]),
    );
    sandbox.run().assert_exit(0);
    sandbox.write_file("input.json", &calls_message(&[("look", 1), ("pay", 3)]));
    let next = sandbox.resume().assert_exit(0);
    assert_eq!(next.result_texts(), ["looked 1", "paid 3"]);
}

/// Calls are identified by position, tool and input. When a killed run is resumed, their ids may have changed.
#[test]
fn ids_may_change() {
    let calls = calls_message(&[("pay", 1), ("fatal", 2), ("pay", 3)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls);
    assert_eq!(sandbox.run().code, None);
    sandbox.write_file("input.json", &calls.replace("toolu_", "other_"));
    let done = sandbox.resume().assert_exit(3);
    assert_eq!(done.result_texts()[0], "paid 1");
    assert!(done.stdout.contains("other_0"));
    assert_eq!(sandbox.effects()[0], "pay 1");
    assert!(!sandbox.effects()[1..].contains(&"pay 1".to_owned()));
    sandbox.assert_log_sequence();
}

/// A resumed run continues with the first call that has no result.
#[test]
fn lines_resume_where_they_stopped() {
    let turns: Vec<String> = (0..6)
        .map(|turn| match turn {
            3 => calls_message(&[("look", 30), ("fatal", 31)]),
            turn => calls_message(&[("pay", turn)]),
        })
        .collect();
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &turns.join("\n"));
    let first = sandbox.run();
    assert_eq!((first.code, first.stdout.lines().count()), (None, 3));
    let done = sandbox.resume().assert_exit(3);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[..3].join("\n"), first.stdout.trim_end());
    assert!(lines[3].contains("looked 30") && lines[3].contains("In doubt"));
    let pays: Vec<String> = [0, 1, 2, 4, 5].map(|n| format!("pay {n}")).into();
    let mut effects = sandbox.effects();
    effects.retain(|line| line.starts_with("pay"));
    assert_eq!(effects, pays);
    sandbox.assert_log_sequence();
}

/// Calls with a result keep it. Calls without one run with changed tools only if the user accepts the changes.
#[test]
fn changed_tools_need_accept_changes() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(sandbox.run().code, None);
    sandbox.resume().assert_exit(3);
    let changed = effect_recording_tools()
        .replace("looked", "seen")
        .replace("paid", "settled");
    sandbox.write_file("tools.yaml", &changed);
    let finished = sandbox.resume().assert_exit(3);
    assert_eq!(
        [&finished.result_texts()[0], &finished.result_texts()[2]],
        ["looked 1", "paid 3"]
    );
    sandbox.write_file(
        "input.json",
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3), ("pay", 4)]),
    );
    let refused = sandbox.resume().assert_exit(2);
    assert!(
        refused
            .stderr
            .contains("still have to run (pay); changed: pay (its command)")
            && refused.stderr.contains("--accept-changes"),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.effects().len(), 3);
    let arguments = [
        "run",
        "--resume",
        "--accept-changes",
        "--log",
        "log.jsonl",
        "input.json",
    ];
    let accepted = sandbox.run_toolq(&arguments).assert_exit(3);
    let texts = accepted.result_texts();
    assert_eq!(
        [&texts[0], &texts[2], &texts[3]],
        ["looked 1", "paid 3", "settled 4"]
    );
    sandbox.assert_log_sequence();
}

/// What still has to run is compared by what its tool means, not by the bytes of tools.yaml.
#[test]
fn a_comment_and_the_change_of_another_tool_dont_block_a_resume() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(sandbox.run().code, None);
    let changed = effect_recording_tools().replace("looked", "seen");
    sandbox.write_file("tools.yaml", &format!("# Reviewed.\n{changed}"));
    let resumed = sandbox.resume().assert_exit(3);
    assert_eq!(resumed.result_texts()[0], "looked 1");
    assert_eq!(resumed.result_texts()[2], "paid 3");
}

/// An older toolq recorded digests of another kind, which can't be compared. Its log stays readable.
#[test]
fn a_digest_of_the_old_kind_counts_as_unknown() {
    let old_digests = || {
        let sandbox = ResumeSandbox::new(
            &effect_recording_tools(),
            &calls_message(&[("pay", 1), ("fatal", 2)]),
        );
        assert_eq!(sandbox.run().code, None);
        sandbox.edit_log(|record| {
            if let Some(metadata) = record["metadata"].as_object_mut()
                && metadata.shift_remove("tool_meaning").is_some()
            {
                metadata.insert("tool_sha256".to_owned(), json!("ab".repeat(32)));
            }
        });
        sandbox.write_file(
            "input.json",
            &calls_message(&[("pay", 1), ("fatal", 2), ("pay", 3)]),
        );
        sandbox
    };
    let sandbox = old_digests();
    sandbox.resume().assert_exit(3);
    let sandbox = old_digests();
    let changed = format!("# Reviewed.\n{}", effect_recording_tools());
    sandbox.write_file("tools.yaml", &changed);
    let refused = sandbox.resume().assert_exit(2).stderr;
    assert!(
        refused.contains(
            "changed: pay (an older toolq logged it, so whether it has changed isn't known)"
        ),
        "{refused}"
    );
    sandbox.assert_log_sequence();
}

/// In another directory, the same commands and probes use other files.
#[test]
fn another_directory_needs_accept_changes() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("fatal", 1), ("pay", 2)]),
    );
    assert_eq!(sandbox.run().code, None);
    std::fs::create_dir(sandbox.path().join("elsewhere")).unwrap();
    let resume = |flags: &[&str]| {
        let arguments = [
            "run",
            "--resume",
            "--log",
            "../log.jsonl",
            "-c",
            "../tools.yaml",
        ];
        let arguments = [&arguments[..], flags, &["../input.json"]].concat();
        sandbox.run_toolq_in("elsewhere", &arguments)
    };
    let refused = resume(&[]).assert_exit(2);
    assert!(
        refused
            .stderr
            .contains("calls that still have to run (pay)")
            && refused.stderr.contains("elsewhere")
            && refused.stderr.contains("hint: `cd "),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.effects().len(), 1);
    resume(&["--accept-changes"]).assert_exit(3);
    assert_eq!(sandbox.read_file("elsewhere/effects"), "pay 2\n");
    // Logged results can be printed in any directory.
    assert_eq!(sandbox.resume().assert_exit(3).result_texts()[1], "paid 2");
    sandbox.assert_log_sequence();
}

#[test]
fn a_removed_tool_keeps_its_results() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2)]),
    );
    assert_eq!(sandbox.run().code, None);
    let first = sandbox.resume().assert_exit(3);
    sandbox.write_file(
        "tools.yaml",
        &shell_tools(&[("other", "effect: read", "echo x")]),
    );
    let again = sandbox.resume().assert_exit(3);
    assert_eq!(again.stdout, first.stdout);
}

/// A call that had started is rejected because its tool was removed. With the tool back, its attempts continue to be
/// counted, its idempotency key is the same, and it runs again only if that is safe.
#[test]
fn a_rejection_in_between_keeps_attempts_and_key() {
    let resolve = ["log", "resolve", "toolu_0", "log.jsonl", "--not-done"];
    for (signal, before, after, code, text) in [
        ("KILL", "read", "read", 0, "done 1"),
        ("KILL", "read", "write", 3, "In doubt"),
        ("KILL", "write", "write", 0, "done 1"),
        ("INT", "read", "read", 0, "done 1"),
    ] {
        let script = format!(
            r#"echo "fatal $TOOLQ_IDEMPOTENCY_KEY" >> effects; test -e dead || {{ touch dead; kill -{signal} "$(cat pid)"; sleep 60; }}; echo "done $1""#
        );
        let fatal = |effect: &str| shell_tools(&[("fatal", &format!("effect: {effect}"), &script)]);
        let sandbox = ResumeSandbox::new(&fatal(before), &calls_message(&[("fatal", 1)]));
        let arguments = ["run", "--resume", "--log", "log.jsonl", "input.json"];
        let accept = [&arguments[..], &["--accept-changes"]].concat();
        sandbox.run();
        let mut expected = sandbox.call_records("toolu_0");
        if before == "write" {
            sandbox.run_toolq(&resolve).assert_exit(0);
            expected.push("resolve".to_owned());
        }
        sandbox.write_file(
            "tools.yaml",
            &shell_tools(&[("other", "effect: read", "echo x")]),
        );
        for arguments in [&accept[..], &accept, &arguments] {
            let rejected = sandbox.run_toolq(arguments).assert_exit(0);
            assert!(rejected.result_texts()[0].starts_with("Unknown tool"));
        }
        sandbox.write_file("tools.yaml", &fatal(after));
        let done = sandbox.run_toolq(&accept).assert_exit(code);
        assert!(
            done.result_texts()[0].starts_with(text),
            "{:?}",
            done.result_texts()
        );
        expected.push("tool_result unknown_tool".to_owned());
        expected.extend(match code {
            0 => vec!["tool_start 2".to_owned(), "tool_result ok".to_owned()],
            _ => vec!["tool_in_doubt in_doubt".to_owned()],
        });
        assert_eq!(
            sandbox.call_records("toolu_0"),
            expected,
            "{signal} {before} {after}"
        );
        sandbox.assert_log_sequence();
        let effects = sandbox.effects();
        assert_eq!(effects.len(), if code == 0 { 2 } else { 1 });
        assert_eq!(effects.first(), effects.last(), "the key must be the same");
    }
}

/// An interrupted read runs again, because its result is still missing. Whether an interrupted write did its work isn't
/// known, so it is in doubt, as after a kill.
#[test]
fn interrupted_reads_run_again_and_writes_are_in_doubt() {
    let script = |name: &str| {
        format!(
            r#"echo "{name} $1" >> effects; test -e ended || {{ touch ended; kill -INT "$(cat pid)"; sleep 60; }}; echo "done $1""#
        )
    };
    let (look, pay) = (script("look"), script("pay"));
    let file = shell_tools(&[
        ("look", "effect: read", &look),
        ("pay", "effect: write", &pay),
    ]);
    let (interrupted, in_doubt) = ("Interrupted while running", "In doubt: pay");
    for (name, next, code, first, expected) in [
        ("look", "pay", 0, interrupted, "done 1"),
        ("pay", "look", 3, in_doubt, in_doubt),
    ] {
        let sandbox = ResumeSandbox::new(&file, &calls_message(&[(name, 1), (next, 2)]));
        let interrupted = sandbox.run().assert_exit(130);
        assert!(interrupted.result_texts()[0].starts_with(first));
        assert!(interrupted.result_texts()[1].starts_with("Not executed"));
        let done = sandbox.resume().assert_exit(code);
        assert!(
            done.result_texts()[0].starts_with(expected),
            "{:?}",
            done.result_texts()
        );
        let second = if code == 0 { "done 2" } else { "Not executed" };
        assert!(done.result_texts()[1].starts_with(second));
        sandbox.assert_log_sequence();
    }
}

#[test]
fn conflicting_flags_are_refused() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&[("look", 1)]));
    for flags in [
        ["--resume", "--new"],
        ["--resume", "--no-log"],
        ["--new", "--no-log"],
        ["--accept-changes", "--new"],
    ] {
        sandbox
            .run_toolq(&["run", flags[0], flags[1], "input.json"])
            .assert_exit(2);
    }
    assert!(sandbox.effects().is_empty());
}
