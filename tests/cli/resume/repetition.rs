//! The same input again: what has its result doesn't run again, unless only reads had run.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::support::resume_sandbox::{
    ResumeSandbox, calls_message, effect_recording_tools, message_stream, shell_tools,
};

const RUN_IN_DEFAULT_DIRECTORY: [&str; 2] = ["run", "input.json"];

/// A tool that interrupts toolq the first time it runs.
fn interrupting_tools() -> String {
    let interrupt = r#"echo "stop $1" >> effects; test -e stopped || { touch stopped; kill -INT "$(cat pid)"; sleep 60; }; echo "done $1""#;
    effect_recording_tools()
        + &shell_tools(&[("stop", "effect: idempotent", interrupt)])
            .replace("version: 1\ntools:\n", "")
}

#[test]
fn an_input_that_the_log_has_answered_is_answered_from_the_log() {
    let input = calls_message(&[("look", 1), ("pay", 2)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    let first = sandbox.run().assert_exit(0);
    let log = sandbox.read_file("log.jsonl");
    for _ in 0..2 {
        let again = sandbox.run().assert_exit(0);
        assert_eq!(again.stdout, first.stdout);
        assert!(
            again
                .stderr
                .contains("nothing runs: log.jsonl has the results")
                && again.stderr.contains("--new"),
            "{}",
            again.stderr
        );
    }
    assert_eq!(sandbox.effects(), ["look 1", "pay 2"]);
    assert_eq!(
        sandbox.read_file("log.jsonl"),
        log,
        "nothing may be written"
    );
    let arguments = ["run", "--new", "--log", "log.jsonl", "input.json"];
    sandbox.run_toolq(&arguments).assert_exit(0);
    assert_eq!(sandbox.effects().len(), 4);
    sandbox.run().assert_exit(0);
    assert_eq!(sandbox.effects().len(), 4);
    sandbox.assert_log_sequence();
}

/// Another input appends a run. The first one stays answered, even though it is no longer the last.
#[test]
fn another_input_on_a_finished_log_runs() {
    let input = calls_message(&[("pay", 1)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    let first = sandbox.run().assert_exit(0);
    sandbox.write_file("input.json", &calls_message(&[("pay", 2)]));
    sandbox.run().assert_exit(0);
    assert_eq!(sandbox.effects(), ["pay 1", "pay 2"]);
    sandbox.write_file("input.json", &input);
    assert_eq!(sandbox.run().assert_exit(0).stdout, first.stdout);
    assert_eq!(sandbox.effects(), ["pay 1", "pay 2"]);
    sandbox.assert_log_sequence();
}

/// An hourly check is no repetition.
#[test]
fn an_input_that_only_read_runs_again() {
    let input = calls_message(&[("look", 1), ("look", 2)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    sandbox.run().assert_exit(0);
    sandbox.run().assert_exit(0);
    assert_eq!(sandbox.effects().len(), 4);
    sandbox.assert_log_sequence();
}

/// Rejections and errors are results, too: the exit code is the same, even if tools.yaml has changed.
#[test]
fn results_from_the_log_are_those_of_the_run() {
    let tools = effect_recording_tools();
    let failing = shell_tools(&[(
        "fail",
        "effect: write",
        r#"echo "fail $1" >> effects; exit 3"#,
    )]);
    let tools = tools + &failing.replace("version: 1\ntools:\n", "");
    let input = calls_message(&[("pay", 1), ("fail", 2), ("missing", 3)]);
    let sandbox = ResumeSandbox::new(&tools, &input);
    let arguments = ["run", "--fail-on-error", "--log", "log.jsonl", "input.json"];
    let first = sandbox.run_toolq(&arguments).assert_exit(1);
    sandbox.write_file("tools.yaml", &tools.replace("look:", "missing:"));
    let again = sandbox.run_toolq(&arguments).assert_exit(1);
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(sandbox.effects(), ["pay 1", "fail 2"]);
}

/// After Ctrl-C, the same command would repeat what was done. Both ways out are named.
#[test]
fn a_run_that_was_interrupted_needs_resume_or_new() {
    let input = calls_message(&[("pay", 1), ("stop", 2), ("pay", 3)]);
    let sandbox = ResumeSandbox::new(&interrupting_tools(), &input);
    let interrupted = sandbox.run().assert_exit(130);
    let last_line = interrupted.stderr.lines().last().unwrap();
    assert!(last_line.contains("--resume"), "{}", interrupted.stderr);
    let refused = sandbox.run().assert_exit(4);
    assert!(refused.stdout.is_empty());
    let last_line = refused.stderr.lines().last().unwrap();
    assert!(
        last_line.contains("--resume") && last_line.contains("--new"),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.effects(), ["pay 1", "stop 2"]);
    let done = sandbox.resume().assert_exit(0);
    assert_eq!(done.result_texts(), ["paid 1", "done 2", "paid 3"]);
    assert_eq!(sandbox.effects(), ["pay 1", "stop 2", "stop 2", "pay 3"]);
    assert_eq!(sandbox.run().assert_exit(0).stdout, done.stdout);
    sandbox.assert_log_sequence();
}

/// A run that isn't the last one in the log is finished all the same.
#[test]
fn an_earlier_run_can_be_resumed() {
    let input = calls_message(&[("pay", 1), ("stop", 2)]);
    let sandbox = ResumeSandbox::new(&interrupting_tools(), &input);
    sandbox.run().assert_exit(130);
    sandbox.write_file("input.json", &calls_message(&[("pay", 5)]));
    sandbox.run().assert_exit(0);
    sandbox.write_file("input.json", &input);
    sandbox.run().assert_exit(4);
    let done = sandbox.resume().assert_exit(0);
    assert_eq!(done.result_texts(), ["paid 1", "done 2"]);
    assert_eq!(sandbox.effects(), ["pay 1", "stop 2", "pay 5", "stop 2"]);
    assert_eq!(sandbox.run().assert_exit(0).stdout, done.stdout);
    sandbox.assert_log_sequence();
}

/// `--resume` in each turn: after a finished run, another input begins a new one.
#[test]
fn a_loop_may_always_resume() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), "");
    for turn in 0..3 {
        // The same ids and the same first tool in each turn.
        let calls = calls_message(&[("pay", turn), ("look", 9)]);
        sandbox.write_file("input.json", &calls);
        for _ in 0..2 {
            let done = sandbox.resume().assert_exit(0);
            assert_eq!(
                done.result_texts(),
                [format!("paid {turn}"), "looked 9".to_owned()]
            );
        }
    }
    let pays: Vec<String> = (0..3).map(|turn| format!("pay {turn}")).collect();
    let mut effects = sandbox.effects();
    effects.retain(|effect| effect.starts_with("pay"));
    assert_eq!(effects, pays);
    sandbox.assert_log_sequence();
}

/// The same for streams, which are compared by their first call.
#[test]
fn a_loop_may_always_resume_with_streams() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), "");
    for turn in 0..2 {
        let stream = message_stream(&[calls_message(&[("pay", turn)])]);
        sandbox.write_file("input.json", &stream);
        for _ in 0..2 {
            let done = sandbox.resume().assert_exit(0);
            assert_eq!(done.result_texts(), [format!("paid {turn}")]);
        }
    }
    assert_eq!(sandbox.effects(), ["pay 0", "pay 1"]);
    sandbox.assert_log_sequence();
}

/// A killed run has to be finished, or given up, before another input is resumed.
#[test]
fn another_input_behind_a_killed_run_is_refused() {
    let input = calls_message(&[("fatal", 1)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    assert_eq!(sandbox.run().code, None);
    let other = calls_message(&[("look", 7)]);
    let answered = r#"{"role":"assistant","content":[]}"#;
    sandbox.write_file("input.json", &format!("{answered}\n{other}"));
    let refused = sandbox.resume().assert_exit(2);
    assert!(
        refused.stderr.contains("had another input"),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.effects().len(), 1);
    sandbox.write_file("input.json", &input);
    sandbox.resume().assert_exit(3);
}

/// Without `--log`, a killed run isn't forgotten: its session is found by the name of its file.
#[test]
fn a_killed_run_in_the_default_directory_is_not_repeated() {
    let input = calls_message(&[("pay", 1), ("fatal", 2), ("pay", 3)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    assert_eq!(sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).code, None);
    let effects = sandbox.effects();
    let refused = sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(4);
    let last_line = refused.stderr.lines().last().unwrap();
    assert!(
        last_line.contains("--resume") && last_line.contains("--new"),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.effects(), effects);
    // Another input, root or tools file is another matter.
    sandbox.write_file("other.json", &calls_message(&[("pay", 9)]));
    sandbox.run_toolq(&["run", "other.json"]).assert_exit(0);
    sandbox.write_file("other.yaml", &effect_recording_tools());
    sandbox
        .run_toolq(&["run", "-c", "other.yaml", "input.json"])
        .assert_exit(0);
    sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(4);
    let done = sandbox
        .run_toolq(&["run", "--new", "input.json"])
        .assert_exit(0);
    assert_eq!(done.result_texts(), ["paid 1", "done 2", "paid 3"]);
    sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(0);
}

#[test]
fn a_killed_run_in_the_default_directory_is_resumed() {
    let input = calls_message(&[("pay", 1), ("fatal", 2), ("keep", 3)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    assert_eq!(sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).code, None);
    let done = sandbox
        .run_toolq(&["run", "--resume", "input.json"])
        .assert_exit(3);
    assert_eq!(done.result_texts()[0], "paid 1");
    assert_eq!(sandbox.effects()[0], "pay 1");
    // It has an end now, and its call in doubt is reported by the log.
    sandbox
        .run_toolq(&["run", "--resume", "input.json"])
        .assert_exit(3);
    let pays = sandbox
        .effects()
        .into_iter()
        .filter(|effect| effect == "pay 1");
    assert_eq!(pays.count(), 1);
}

/// A run that was interrupted has ended, and so has one that resumed a killed one. Both may leave a call in doubt.
#[test]
fn a_call_in_doubt_is_not_repeated_by_a_run_without_log() {
    for signal in ["INT", "KILL"] {
        let script = format!(
            r#"echo "pay $1" >> effects; test -e ended || {{ touch ended; kill -{signal} "$(cat pid)"; sleep 60; }}; echo "paid $1""#
        );
        let tools = shell_tools(&[("pay", "effect: write", &script)]);
        let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("pay", 1)]));
        sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY);
        if signal == "KILL" {
            let resume = ["run", "--resume", "input.json"];
            sandbox.run_toolq(&resume).assert_exit(3);
        }
        let again = sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(4);
        assert!(
            again.stderr.contains("left toolu_0 (pay) in doubt")
                && again.stderr.contains("toolq log resolve toolu_0 "),
            "{}",
            again.stderr
        );
        assert_eq!(sandbox.effects(), ["pay 1"], "{signal}");
        let anew = sandbox.run_toolq(&["run", "--new", "input.json"]);
        assert_eq!(anew.assert_exit(0).result_texts(), ["paid 1"]);
        // The latest session has no call in doubt.
        sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(0);
    }
}

/// The path of a write leads to the log, which only the check right before its start finds.
#[test]
fn a_call_that_is_refused_at_its_start_is_not_in_doubt() {
    let tools = "version: 1\ntools:\n  note:\n    input_schema: {type: object, properties: {p: {type: string}}, required: [p]}\n    paths: [p]\n    command: [touch, \"{p}\"]\n";
    let input = |path: &str| {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"note","input":{{"p":"{path}"}}}}]}}"#
        )
    };
    let sandbox = ResumeSandbox::new(tools, &input("log.jsonl"));
    let first = sandbox.run().assert_exit(0);
    assert!(
        first.result_texts()[0].contains("it was not run"),
        "{}",
        first.stdout
    );
    let expected = ["tool_call", "tool_start 1", "tool_result path_outside_root"];
    assert_eq!(sandbox.call_records("a")[..], expected);
    // The same input is answered from the log, and another one with that id runs.
    let again = sandbox.run().assert_exit(0);
    assert_eq!(again.stdout, first.stdout);
    assert!(!again.stderr.contains("in doubt"), "{}", again.stderr);
    let resumed = sandbox.resume().assert_exit(0);
    assert_eq!(resumed.stdout, first.stdout);
    sandbox.write_file("input.json", &input("other"));
    sandbox.run().assert_exit(0);
    assert!(sandbox.path().join("other").exists());
    sandbox.assert_log_sequence();
}

#[test]
fn a_killed_run_that_only_read_starts_over() {
    let script = r#"echo "look $1" >> effects; test -e dead || { touch dead; kill -9 "$(cat pid)"; sleep 60; }; echo "looked $1""#;
    let tools = shell_tools(&[("look", "effect: read", script)]);
    let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("look", 1)]));
    assert_eq!(sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).code, None);
    let again = sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(0);
    assert_eq!(again.result_texts(), ["looked 1"]);
    assert!(
        again.stderr.contains("was killed, but had only read"),
        "{}",
        again.stderr
    );
}

/// Two of the same runs at a time are nothing unusual.
#[test]
fn a_session_that_is_still_running_hinders_nobody() {
    let script = r#"echo "pay $1" >> effects; test -e first || { touch first; while test -e first; do sleep 0.02; done; }; echo "paid $1""#;
    let tools = shell_tools(&[("pay", "effect: write", script)]);
    let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("pay", 1)]));
    let mut running = sandbox.spawn(&RUN_IN_DEFAULT_DIRECTORY);
    while !sandbox.path().join("first").exists() {
        sleep(Duration::from_millis(5));
    }
    sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(0);
    fs::remove_file(sandbox.path().join("first")).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert_eq!(sandbox.effects().len(), 2);
    // Both have ended.
    sandbox.write_file("first", "");
    sandbox.run_toolq(&RUN_IN_DEFAULT_DIRECTORY).assert_exit(0);
}
