//! A session log as the input of another run.

use crate::support::resume_sandbox::{
    ResumeSandbox, calls_message, effect_recording_tools, shell_tools,
};

/// A call that has a start but no result in the input log isn't repeated.
#[test]
fn calls_that_had_started_are_not_repeated_by_another_run() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(sandbox.run().code, None);
    let done = sandbox
        .run_toolq(&["run", "--log", "other.jsonl", "log.jsonl"])
        .assert_exit(3);
    assert!(!done.stdout.contains("toolu_0"), "this call has its result");
    assert!(done.stdout.contains("In doubt: fatal") && done.stdout.contains("paid 3"));
    assert_eq!(sandbox.effects().len(), 3);
    let again = sandbox
        .run_toolq(&["run", "--log", "other.jsonl", "log.jsonl"])
        .assert_exit(3);
    assert_eq!(again.stdout, done.stdout);
    assert_eq!(sandbox.effects().len(), 3);
}

/// A call that the input log records as in doubt stays in doubt, and what may build on it waits until it is settled.
#[test]
fn calls_after_one_that_is_in_doubt_in_the_input_log_dont_run() {
    let tools = effect_recording_tools().replace("on_doubt: continue", "on_doubt: stop");
    let input = calls_message(&[("look", 1), ("fatal", 2), ("look", 3), ("pay", 4)]);
    let sandbox = ResumeSandbox::new(&tools, &input);
    assert_eq!(sandbox.run().code, None);
    sandbox.run().assert_exit(3);
    let planned = sandbox.run_toolq(&["plan", "log.jsonl"]).assert_exit(0);
    assert!(
        planned.stderr.contains("in doubt: fatal toolu_1"),
        "{}",
        planned.stderr
    );
    let again = ["run", "--log", "other.jsonl", "log.jsonl"];
    let stopped = sandbox.run_toolq(&again).assert_exit(3);
    let texts = stopped.result_texts();
    assert!(texts[0].starts_with("In doubt: fatal"), "{texts:?}");
    let expected = "Not executed: whether the preceding fatal call happened is not known.";
    assert!(texts.len() == 3 && texts[1..].iter().all(|text| text.starts_with(expected)));
    assert_eq!(sandbox.effects().len(), 2);
    let settle = [
        "log",
        "resolve",
        "toolu_1",
        "log.jsonl",
        "--done",
        "--result",
        "seen",
    ];
    sandbox.run_toolq(&settle).assert_exit(0);
    let settled = sandbox
        .run_toolq(&["run", "--no-log", "log.jsonl"])
        .assert_exit(0);
    assert_eq!(settled.result_texts(), ["looked 3", "paid 4"]);
}

/// A call that was stopped along with its run has no result of its own, so it's decided as if that log were the memory.
#[test]
fn calls_that_were_interrupted_run_again_or_are_in_doubt() {
    let script = r#"echo "look $1" >> effects; test -e ended || { touch ended; kill -INT "$(cat pid)"; sleep 60; }; echo "done $1""#;
    for (effect, flags, code, text) in [
        ("read", &["run", "--no-log", "log.jsonl"][..], 0, "done 1"),
        (
            "write",
            &["run", "--no-log", "log.jsonl"],
            3,
            "In doubt: look",
        ),
    ] {
        let tools = |effect: &str| shell_tools(&[("look", &format!("effect: {effect}"), script)]);
        let sandbox = ResumeSandbox::new(&tools("read"), &calls_message(&[("look", 1)]));
        let interrupted = sandbox.run().assert_exit(130);
        assert!(interrupted.stdout.contains("Interrupted while running"));
        sandbox.write_file("tools.yaml", &tools(effect));
        let done = sandbox.run_toolq(flags).assert_exit(code);
        assert!(done.stdout.contains(text), "{effect}: {}", done.stdout);
        assert_eq!(
            sandbox.effects().len(),
            if effect == "read" { 2 } else { 1 }
        );
    }
}

/// A call in doubt whose tool says `on_doubt: continue` holds up no other call, in the input log either.
#[test]
fn on_doubt_continue_holds_for_doubts_of_the_input_log() {
    let input = calls_message(&[("fatal", 1), ("pay", 2)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    assert_eq!(sandbox.run().code, None);
    sandbox.run().assert_exit(3);
    let effects = sandbox.effects();
    let done = sandbox
        .run_toolq(&["run", "--no-log", "log.jsonl"])
        .assert_exit(3);
    let texts = done.result_texts();
    assert!(
        texts.len() == 1 && texts[0].starts_with("In doubt: fatal"),
        "{texts:?}"
    );
    assert_eq!(sandbox.effects(), effects);
}

/// The log decides which calls run. If it is damaged or still being written, nothing runs.
#[test]
fn an_untrustworthy_log_runs_nothing() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(sandbox.run().code, None);
    let (intact, effects) = (sandbox.read_file("log.jsonl"), sandbox.effects());
    let assert_refused = |message: &str| {
        for verb in ["run", "plan"] {
            let refused = sandbox.run_toolq(&[verb, "log.jsonl"]).assert_exit(2);
            assert!(refused.stderr.contains(message), "{}", refused.stderr);
            assert!(refused.stdout.is_empty());
        }
        assert_eq!(sandbox.effects(), effects);
    };
    sandbox.write_file("log.jsonl", &intact.replace("tool_start", "tool_strat"));
    assert_refused("is damaged");
    let without_start = |line: &&str| !line.contains("tool_start");
    let rest: Vec<&str> = intact.lines().filter(without_start).collect();
    sandbox.write_file("log.jsonl", &(rest.join("\n") + "\n"));
    assert_refused("is damaged");
    sandbox.write_file("log.jsonl", &intact);
    let writer = std::fs::File::open(sandbox.log_path()).unwrap();
    writer.lock().unwrap();
    assert_refused("is in use");
    drop(writer);
    let planned = sandbox.run_toolq(&["plan", "log.jsonl"]).assert_exit(0);
    assert!(
        planned.stderr.contains("in doubt: fatal toolu_1"),
        "{}",
        planned.stderr
    );
}

/// A killed run may leave half a record. Nothing depends on it, so the records before it are enough.
#[test]
fn a_torn_log_can_be_run_and_exported() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]),
    );
    assert_eq!(sandbox.run().code, None);
    let intact = sandbox.read_file("log.jsonl");
    let export = ["log", "export", "log.jsonl"];
    let whole = sandbox.run_toolq(&export).assert_exit(0);
    for torn_end in ["{\"seq\":9,\"id\":\"0199", "{", "{\"a\":1}"] {
        sandbox.write_file("log.jsonl", &format!("{intact}{torn_end}"));
        sandbox
            .run_toolq(&["run", "--no-log", "log.jsonl"])
            .assert_exit(3);
        let exported = sandbox.run_toolq(&export).assert_exit(0);
        assert_eq!(exported.stdout, whole.stdout);
        assert!(
            exported.stderr.contains("log.jsonl is incomplete at line"),
            "{}",
            exported.stderr
        );
    }
}

/// A call in the input log that was resolved as done isn't run, one that was resolved as not done is.
#[test]
fn resolutions_in_the_log_apply() {
    for (resolution, text) in [
        (vec!["--done", "--result", "by hand"], None),
        (vec!["--not-done"], Some("done 2")),
    ] {
        let sandbox = ResumeSandbox::new(
            &effect_recording_tools(),
            &calls_message(&[("look", 1), ("fatal", 2)]),
        );
        assert_eq!(sandbox.run().code, None);
        let resolve = ["log", "resolve", "toolu_1", "log.jsonl"];
        sandbox
            .run_toolq(&[&resolve[..], &resolution].concat())
            .assert_exit(0);
        let done = sandbox.run_toolq(&["run", "--no-log", "log.jsonl"]);
        match text {
            Some(text) => assert!(done.assert_exit(0).stdout.contains(text)),
            None => assert!(done.assert_exit(5).stdout.is_empty()),
        }
    }
}

/// Inputs that are too large for a record are read from the blobs next to the log, wherever toolq runs. If one is
/// missing, nothing runs, not even earlier calls.
#[test]
fn large_inputs_are_read_from_blobs() {
    let tools = "version: 1\ntools:\n  size:\n    input_schema: {type: object, properties: {t: {type: string}}, required: [t]}\n    command: {argv: [sh, -c, 'wc -c; echo ran >> effects'], stdin: \"{t}\"}\n";
    let turn = |letter: &str| {
        let input = serde_json::json!({"t": letter.repeat(100_000)});
        serde_json::json!([{"type": "tool_use", "id": letter, "name": "size", "input": input}])
            .to_string()
    };
    let sandbox = ResumeSandbox::new(tools, &[turn("x"), turn("y")].join("\n"));
    sandbox.run().assert_exit(0);
    std::fs::create_dir(sandbox.path().join("a")).unwrap();
    for file in ["log.jsonl", "log.jsonl.d"] {
        std::fs::rename(
            sandbox.path().join(file),
            sandbox.path().join("a").join(file),
        )
        .unwrap();
    }
    let run = ["run", "--all", "--no-log", "a/log.jsonl"];
    let plan = ["plan", "--all", "--format", "json", "a/log.jsonl"];
    let done = sandbox.run_toolq(&run).assert_exit(0);
    assert_eq!(done.stdout.matches("100000").count(), 2, "{}", done.stdout);
    let planned = sandbox.run_toolq(&plan).assert_exit(0).stdout;
    assert_eq!(planned.matches(r#""rejected":[]"#).count(), 2, "{planned}");
    assert_eq!(sandbox.effects().len(), 4);
    let text = std::fs::read_to_string(sandbox.path().join("a/log.jsonl")).unwrap();
    let last = crate::support::parse_json_lines(&text)
        .into_iter()
        .rfind(|record| record["type"] == "tool_call");
    let blob = last.unwrap()["content"]["$file"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::remove_file(sandbox.path().join("a/log.jsonl.d").join(&blob)).unwrap();
    let message = format!(
        "a/log.jsonl:7:1: the file {blob} in a/log.jsonl.d, referenced by the session log, can't be read: No such file"
    );
    for arguments in [&run[..], &plan] {
        let refused = sandbox.run_toolq(arguments).assert_exit(2);
        assert!(refused.stderr.contains(&message), "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
    assert_eq!(sandbox.effects().len(), 4);
    let piped = crate::support::CliSandbox::new().tools(tools).stdin(text);
    let refused = piped.run(&run[..3]).assert_exit(2).stderr;
    assert!(
        refused.contains("name the log, `toolq run LOG`, instead of piping it"),
        "{refused}"
    );
}
