//! toolq fails, panics or is killed at every step of writing a log.

use std::fs;

use serde_json::json;

use crate::support::{Ran, Toolq, response, say};
use crate::{FEW, few, ran, toolq, whole_lines};

const RUN: [&str; 4] = ["run", "-q", "--log", "log"];

/// Runs toolq as often as it passes places, each time killed at the next, and says how many there are.
fn killed_everywhere(make: impl Fn() -> Toolq, check: impl Fn(&Ran)) -> usize {
    for at in 1..500 {
        let ended = hurt(make(), at, "kill");
        check(&ended);
        if ended.code == 0 {
            return at - 1;
        }
        assert_eq!(ended.code, -1, "{}", ended.stderr);
    }
    panic!("it never comes to its end")
}

fn hurt(toolq: Toolq, at: usize, action: &str) -> Ran {
    let wanted = format!("any:{at}:{action}");
    toolq.env("TOOLQ_FAILPOINT", &wanted).run(&RUN)
}

/// Whatever ran is on record, and no record is half there unless it is the last.
fn nothing_is_forgotten(ended: &Ran) {
    let records = whole_lines(&ended.dir.path().join("log"));
    let starts = |tool: &str| {
        let of = |record: &&serde_json::Value| {
            record["type"] == "tool_start" && record["metadata"]["tool_name"] == tool
        };
        records.iter().filter(of).count()
    };
    for tool in ["pay", "look"] {
        let ran = ran(ended.dir.path(), tool);
        assert!(
            ran <= starts(tool),
            "{tool} ran {ran} times\n{}",
            ended.stderr
        );
    }
}

/// FAULTS 108, 111, 112, I 134: toolq is killed at each place that it passes, then the step there fails, then it panics.
/// What ran is on record; what was printed is whole; a failing log leaves no call without its answer.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn every_step_may_be_hurt() {
    let make = || toolq().stdin(few());
    let check = |ended: &Ran| {
        nothing_is_forgotten(ended);
        assert!(ended.stdout.is_empty() || ended.texts().len() == FEW);
    };
    let places = killed_everywhere(make, check);
    for at in 1..=places {
        check(&hurt(make(), at, "panic"));
        let ended = hurt(make(), at, "error");
        check(&ended);
        match ended.code {
            // The log could not be begun: then nothing ran.
            4 if ended.stdout.is_empty() => assert_eq!(ran(ended.dir.path(), "look"), 0),
            0 | 4 => assert_eq!(ended.texts().len(), FEW),
            code => panic!("{code}: {}", ended.stderr),
        }
    }
    say(format_args!(
        "killed, failed and panicked at {places} places"
    ));
}

/// FAULTS 124: whenever recovery is killed, what was whole before stays, and the next run finishes what is left of it.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn recovery_may_be_killed() {
    let nothing = || toolq().stdin(response(&[("look", json!({}))]));
    let whole = nothing().run(&RUN).exits(0);
    let whole = fs::read(whole.dir.path().join("log")).unwrap();
    let torn = br#"{"seq":6,"id":"01"#;
    let make = || nothing().file("log", [&whole[..], torn].concat());
    let places = killed_everywhere(make, |ended| {
        let mut next = nothing();
        for name in ["log", "log.torn-6", "log.torn-6.1"] {
            if let Ok(bytes) = fs::read(ended.dir.path().join(name)) {
                assert!(name != "log" || bytes.starts_with(&whole));
                next = next.file(name, bytes);
            }
        }
        let next = next.run(&RUN);
        match next.code {
            0 => assert!(next.file("log").unwrap().contains("\"recovered\"")),
            // What was killed had come to its own session, which is unfinished.
            4 => assert!(next.stderr.contains("is unfinished"), "{}", next.stderr),
            code => panic!("{code}: {}", next.stderr),
        }
        assert_eq!(fs::read(next.dir.path().join("log.torn-6")).unwrap(), torn);
    });
    say(format_args!("killed at {places} places"));
}
