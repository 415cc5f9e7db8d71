//! Makes toolq fail, panic, or be killed at every step of writing a log.

use std::fs;

use serde_json::json;

use crate::log_durability::{THREE_CALL_COUNT, complete_records, count_runs, three_calls, toolq};
use crate::support::{CliOutput, CliSandbox, eprint_uncaptured, full_or_short, model_response};

/// From one step at which something goes wrong to the next.
const STRIDE: usize = full_or_short(1, 11);
const RUN_ARGUMENTS: [&str; 4] = ["run", "-q", "--log", "log"];

/// Kills toolq at the failpoints that it passes. Returns the last of them.
fn kill_at_every_step(make: impl Fn() -> CliSandbox, check: impl Fn(&CliOutput)) -> usize {
    for step in (1..500).step_by(STRIDE) {
        let ended = run_with_failpoint(make(), step, "kill");
        check(&ended);
        if ended.code == 0 {
            return step - 1;
        }
        assert_eq!(ended.code, -1, "{}", ended.stderr);
    }
    panic!("toolq passes too many failpoints")
}

fn run_with_failpoint(toolq: CliSandbox, step: usize, action: &str) -> CliOutput {
    let failpoint = format!("any:{step}:{action}");
    toolq.env("TOOLQ_FAILPOINT", &failpoint).run(&RUN_ARGUMENTS)
}

/// Asserts that every call that ran has a start record, and that only the last record may be incomplete.
fn assert_runs_are_logged(output: &CliOutput) {
    let records = complete_records(&output.dir.path().join("log"));
    let starts = |tool: &str| {
        let is_start = |record: &&serde_json::Value| {
            record["type"] == "tool_start" && record["metadata"]["tool_name"] == tool
        };
        records.iter().filter(is_start).count()
    };
    for tool in ["pay", "look"] {
        let ran = count_runs(output.dir.path(), tool);
        assert!(
            ran <= starts(tool),
            "{tool} ran {ran} times\n{}",
            output.stderr
        );
    }
}

/// Whether toolq is killed, panics or fails at a step, every call that ran is recorded, and the output is complete or
/// empty. If only the log fails, every call still gets its result.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn every_step_may_fail_panic_or_be_killed() {
    let make = || toolq().stdin(three_calls());
    let check = |ended: &CliOutput| {
        assert_runs_are_logged(ended);
        assert!(ended.stdout.is_empty() || ended.result_texts().len() == THREE_CALL_COUNT);
    };
    let steps = kill_at_every_step(make, check);
    for step in (1..=steps).step_by(STRIDE) {
        check(&run_with_failpoint(make(), step, "panic"));
        let ended = run_with_failpoint(make(), step, "error");
        check(&ended);
        match ended.code {
            // The log couldn't be created, so nothing ran.
            4 if ended.stdout.is_empty() => assert_eq!(count_runs(ended.dir.path(), "look"), 0),
            0 | 4 => assert_eq!(ended.result_texts().len(), THREE_CALL_COUNT),
            code => panic!("{code}: {}", ended.stderr),
        }
    }
    eprint_uncaptured(format_args!("killed, failed and panicked at {steps} steps"));
}

/// Killing the recovery at any step loses no complete record, and the next run finishes the recovery.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn recovery_may_be_killed() {
    let one_call = || toolq().stdin(model_response(&[("look", json!({}))]));
    let ran = one_call().run(&RUN_ARGUMENTS).assert_exit(0);
    let intact = fs::read(ran.dir.path().join("log")).unwrap();
    let torn = br#"{"seq":6,"id":"01"#;
    let make = || one_call().file("log", [&intact[..], torn].concat());
    let steps = kill_at_every_step(make, |ended| {
        let mut next = one_call();
        for name in ["log", "log.torn-6", "log.torn-6.1"] {
            if let Ok(bytes) = fs::read(ended.dir.path().join(name)) {
                assert!(name != "log" || bytes.starts_with(&intact));
                next = next.file(name, bytes);
            }
        }
        let next = next.run(&RUN_ARGUMENTS);
        match next.code {
            0 => assert!(next.file("log").unwrap().contains("\"recovered\"")),
            // The killed run had already begun its own session, which is unfinished.
            4 => assert!(next.stderr.contains("is unfinished"), "{}", next.stderr),
            code => panic!("{code}: {}", next.stderr),
        }
        assert_eq!(fs::read(next.dir.path().join("log.torn-6")).unwrap(), torn);
    });
    eprint_uncaptured(format_args!("killed at {steps} steps"));
}
