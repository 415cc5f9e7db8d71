//! The session log records every run of `describe`, before it starts and with how it ended.

use serde_json::{Value, json};

use super::{PRINT_DESCRIPTION, calls_input, description_json, toolq};
use crate::support::{full_or_short, model_response, parse_json_lines};

fn records_of_type<'l>(log: &'l [Value], kind: &str) -> Vec<&'l Value> {
    log.iter().filter(|record| record["type"] == kind).collect()
}

#[test]
fn the_log_records_the_description() {
    let ran = toolq(PRINT_DESCRIPTION)
        .stdin(calls_input())
        .run(&["run"])
        .assert_exit(0);
    let log = ran.log_records();
    let (starts, ends) = (
        records_of_type(&log, "describe_start"),
        records_of_type(&log, "describe_end"),
    );
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!(starts[0]["parentId"], log[0]["id"]);
    assert_eq!(starts[0]["metadata"], json!({"tool_name": "say"}));
    assert_eq!(ends[0]["parentId"], starts[0]["id"]);
    assert_eq!(ends[0]["content"].to_string(), description_json());
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
    // The tool is described before any of its calls is recorded.
    assert!(ends[0]["seq"].as_u64() < records_of_type(&log, "tool_call")[0]["seq"].as_u64());
}

#[test]
fn the_log_records_why_describe_failed() {
    let cases = [
        ("exit 3", "failed", json!(3), "Exit code 3"),
        ("echo hello", "ok", json!(0), "its output isn't"),
        ("kill -9 $$", "failed", Value::Null, "SIGKILL"),
    ];
    for (script, status, exit, expected) in cases {
        let ran = toolq(script)
            .stdin(calls_input())
            .run(&["run"])
            .assert_exit(0);
        let log = ran.log_records();
        let end = records_of_type(&log, "describe_end")[0];
        assert_eq!(end["content"], Value::Null);
        assert_eq!(end["metadata"]["status"], status, "{script}");
        assert_eq!(end["metadata"]["exit"], exit, "{script}");
        let error = end["metadata"]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{script}: {error}");
    }
}

#[test]
fn log_show_prints_descriptions() {
    let run_and_show = |describe_script: &str| {
        toolq(describe_script)
            .file("input", calls_input())
            .run_shell(
                r#""$TOOLQ" run -q --log log.jsonl < input > results
                "$TOOLQ" log show log.jsonl && "$TOOLQ" log verify log.jsonl"#,
            )
            .assert_exit(0)
    };
    let described = run_and_show(PRINT_DESCRIPTION).stdout;
    assert!(described.contains("say described itself ("), "{described}");
    let failed = run_and_show("exit 3").stdout;
    assert!(
        failed.contains("say could not describe itself ("),
        "{failed}"
    );
}

/// The start of `describe` is recorded before it runs. If the record can't be written, `describe` doesn't run.
#[test]
fn nothing_is_described_when_the_log_fails() {
    let ran = toolq(PRINT_DESCRIPTION)
        .stdin(calls_input())
        .env("TOOLQ_FAILPOINT", "append.before:2:error")
        .run(&["run", "--log", "log.jsonl"])
        .assert_exit(4);
    assert_eq!(ran.file("described"), None);
    let errors: Vec<bool> = ran.result_texts().iter().map(|text| text.1).collect();
    assert_eq!(errors, [true; 4]);
    // If toolq is killed while `describe` runs, the log says that it started.
    let ran = toolq("kill -9 $(cat toolq.pid); sleep 60")
        .file("input", calls_input())
        .run_shell(
            r#"sh -c 'echo $$ > toolq.pid; exec "$TOOLQ" run --log log.jsonl < input > results'
            "$TOOLQ" log show log.jsonl"#,
        )
        .assert_exit(0);
    let log = parse_json_lines(&ran.file("log.jsonl").unwrap());
    assert_eq!(log.last().unwrap()["type"], "describe_start");
    assert!(
        ran.stdout.contains("describing say: no result recorded"),
        "{}",
        ran.stdout
    );
}

/// Wherever toolq is killed, fails or panics, each run of `describe` was recorded before it started.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn descriptions_are_logged_before_they_run_at_every_step() {
    let mut step_count = 0;
    let steps = (1..).step_by(full_or_short(1, 9));
    for (at, action) in steps.flat_map(|at| ["kill", "panic", "error"].map(|action| (at, action))) {
        let ran = toolq(PRINT_DESCRIPTION)
            .stdin(model_response(&[("say", json!({"x": "hello"}))]))
            .env("TOOLQ_FAILPOINT", &format!("any:{at}:{action}"))
            .run(&["run", "--log", "log.jsonl"]);
        let log = ran.file("log.jsonl").unwrap_or_default();
        let records = parse_json_lines(&log[..log.rfind('\n').map_or(0, |end| end + 1)]);
        let describe_count = ran.file("described").unwrap_or_default().lines().count();
        assert!(
            describe_count <= records_of_type(&records, "describe_start").len(),
            "{action} {at}: {log}"
        );
        if describe_count == 0 {
            let starts = records_of_type(&records, "tool_start").len();
            assert_eq!(starts, 0, "{action} {at}: {log}");
        }
        if (action, ran.code) == ("kill", 0) {
            step_count = at - 1;
            break;
        }
    }
    assert!(step_count > 20, "{step_count}");
}

/// A time budget also stops `describe`, and every call still gets a result.
#[test]
fn a_time_budget_ends_a_describe() {
    let calls = model_response(&[("say", json!({"x": "hello"})), ("other", json!({}))]);
    let ran = toolq("sleep 60").stdin(calls);
    let ran = ran.run(&["run", "--time-budget", "300ms"]).assert_exit(3);
    let log = ran.log_records();
    let end = records_of_type(&log, "describe_end")[0];
    assert_eq!(end["metadata"]["status"], "over_budget");
    let skipped = records_of_type(&log, "tool_skipped");
    let statuses: Vec<&Value> = skipped
        .iter()
        .map(|end| &end["metadata"]["status"])
        .collect();
    assert_eq!(statuses, ["over_budget"; 2]);
}
