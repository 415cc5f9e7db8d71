//! Nothing ran that the log doesn't tell.

use serde_json::{Value, json};

use super::support::{json_lines, response};
use super::{WELL, calls, said, toolq};

fn of_kind<'l>(log: &'l [Value], kind: &str) -> Vec<&'l Value> {
    log.iter().filter(|record| record["type"] == kind).collect()
}

#[test]
fn the_log_has_what_it_said() {
    let ran = toolq(WELL).stdin(calls()).run(&["run"]).exits(0);
    let log = ran.log();
    let (starts, ends) = (
        of_kind(&log, "describe_start"),
        of_kind(&log, "describe_end"),
    );
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!(starts[0]["parentId"], log[0]["id"]);
    assert_eq!(starts[0]["metadata"], json!({"tool_name": "say"}));
    assert_eq!(ends[0]["parentId"], starts[0]["id"]);
    assert_eq!(ends[0]["content"].to_string(), said());
    let metadata = &ends[0]["metadata"];
    assert!(metadata["duration_ms"].is_u64());
    for (key, value) in [
        ("status", json!("ok")),
        ("exit", json!(0)),
        ("attempts", json!(1)),
    ] {
        assert_eq!(metadata[key], value, "{key}");
    }
    assert_eq!(metadata["error"], Value::Null);
    // It is asked before any of its calls is on record.
    assert!(ends[0]["seq"].as_u64() < of_kind(&log, "tool_call")[0]["seq"].as_u64());
}

#[test]
fn the_log_has_why_it_said_nothing() {
    let cases = [
        ("exit 3", "failed", json!(3), "Exit code 3"),
        ("echo hello", "ok", json!(0), "what it prints is no"),
        ("kill -9 $$", "failed", Value::Null, "SIGKILL"),
    ];
    for (says, status, exit, why) in cases {
        let ran = toolq(says).stdin(calls()).run(&["run"]).exits(0);
        let log = ran.log();
        let end = of_kind(&log, "describe_end")[0];
        assert_eq!(end["content"], Value::Null);
        assert_eq!(end["metadata"]["status"], status, "{says}");
        assert_eq!(end["metadata"]["exit"], exit, "{says}");
        let error = end["metadata"]["error"].as_str().unwrap();
        assert!(error.contains(why), "{says}: {error}");
    }
}

#[test]
fn people_read_it() {
    let script = |says: &str| {
        toolq(says)
            .file("input", calls())
            .shell(
                r#""$TOOLQ" run -q --log log.jsonl < input > results
                "$TOOLQ" log show log.jsonl && "$TOOLQ" log verify log.jsonl"#,
            )
            .exits(0)
    };
    let well = script(WELL).stdout;
    assert!(
        well.contains("say said in ") && well.contains(" what it takes"),
        "{well}"
    );
    let silent = script("exit 3").stdout;
    assert!(silent.contains("say could not say in "), "{silent}");
}

/// FAULTS 111: its start is on record before it runs, and where that can't be written it doesn't.
#[test]
fn what_the_log_refuses_is_not_asked() {
    let ran = toolq(WELL)
        .stdin(calls())
        .env("TOOLQ_FAILPOINT", "append.before:2:error")
        .run(&["run", "--log", "log.jsonl"])
        .exits(4);
    assert_eq!(ran.file("asked"), None);
    let errors: Vec<bool> = ran.texts().iter().map(|text| text.1).collect();
    assert_eq!(errors, [true; 4]);
    // Killed in it, it is on record that it may have run.
    let ran = toolq("kill -9 $(cat toolq.pid); sleep 60")
        .file("input", calls())
        .shell(
            r#"sh -c 'echo $$ > toolq.pid; exec "$TOOLQ" run --log log.jsonl < input > results'
            "$TOOLQ" log show log.jsonl"#,
        )
        .exits(0);
    let log = json_lines(&ran.file("log.jsonl").unwrap());
    assert_eq!(log.last().unwrap()["type"], "describe_start");
    assert!(
        ran.stdout.contains("no answer is on record"),
        "{}",
        ran.stdout
    );
}

/// What a tool says of itself is a part of its definition.
#[test]
fn another_schema_is_another_tool() {
    let ran = toolq(WELL)
        .file("input", response(&[("say", json!({"x": "hello"}))]))
        .shell(
            r#""$TOOLQ" run --log one < input && "$TOOLQ" run --log same < input &&
            sed -i 's/Says x/Says it/' said && "$TOOLQ" run --log changed < input"#,
        )
        .exits(0);
    let digest = |name: &str| {
        let log = json_lines(&ran.file(name).unwrap());
        let call = of_kind(&log, "tool_call")[0].clone();
        call["metadata"]["tool_sha256"].as_str().unwrap().to_owned()
    };
    assert_eq!(digest("one"), digest("same"));
    assert_ne!(digest("one"), digest("changed"));
}

/// FAULTS 108: wherever toolq is killed, fails or panics, what was asked is on record before, once each time.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn every_step_may_be_hurt() {
    let mut places = 0;
    for (at, action) in (1..).flat_map(|at| ["kill", "panic", "error"].map(|action| (at, action))) {
        let ran = toolq(WELL)
            .stdin(response(&[("say", json!({"x": "hello"}))]))
            .env("TOOLQ_FAILPOINT", &format!("any:{at}:{action}"))
            .run(&["run", "--log", "log.jsonl"]);
        let log = ran.file("log.jsonl").unwrap_or_default();
        let whole = json_lines(&log[..log.rfind('\n').map_or(0, |end| end + 1)]);
        let asked = ran.file("asked").unwrap_or_default().lines().count();
        assert!(
            asked <= of_kind(&whole, "describe_start").len(),
            "{action} {at}: {log}"
        );
        if asked == 0 {
            let starts = of_kind(&whole, "tool_start").len();
            assert_eq!(starts, 0, "{action} {at}: {log}");
        }
        if (action, ran.code) == ("kill", 0) {
            places = at - 1;
            break;
        }
    }
    assert!(places > 20, "{places}");
}

/// FAULTS 133: a budget of time ends what is asked, too, and the calls are answered.
#[test]
fn a_budget_of_time_ends_it() {
    let calls = response(&[("say", json!({"x": "hello"})), ("other", json!({}))]);
    let ran = toolq("sleep 60").stdin(calls);
    let ran = ran.run(&["run", "--time-budget", "300ms"]).exits(3);
    let log = ran.log();
    let end = of_kind(&log, "describe_end")[0];
    assert_eq!(end["metadata"]["status"], "over_budget");
    let skipped = of_kind(&log, "tool_skipped");
    let statuses: Vec<&Value> = skipped
        .iter()
        .map(|end| &end["metadata"]["status"])
        .collect();
    assert_eq!(statuses, ["over_budget"; 2]);
}
