//! Flags that choose calls.

use serde_json::json;

use crate::log::log_builder::LogBuilder;
use crate::log::show::{mask_durations, show_log, show_run};
use crate::support::parse_json_lines;

#[test]
fn filters_select_calls() {
    let errors = show_run("--errors").stdout;
    assert!(
        errors.contains("unknown tool") && errors.contains("not executed"),
        "{errors}"
    );
    assert!(
        errors.contains("turn 0") && !errors.contains("three") && !errors.contains("exit 0 after")
    );
    let tools = show_run("--tool say --tool missing").stdout;
    assert!(
        tools.contains("three") && tools.contains("missing") && !tools.contains("exit 3"),
        "{tools}"
    );
    let filtered = show_run("--tool no_such --tool fial --tool say");
    assert!(filtered.stdout.contains("three"), "{}", filtered.stdout);
    insta::assert_snapshot!(filtered.stderr, @"
    warning: no calls of fial in log.jsonl; did you mean fail?
    warning: no calls of no_such in log.jsonl
    ");
    assert_eq!(show_run("--tool no_such").stdout, "");
}

/// `resolve` and probe records belong to their call's tool too.
#[test]
fn the_tool_filter_keeps_every_record_of_its_calls() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    let call = log.call(turn, "pay", &json!({}));
    log.start(call, "pay", 1);
    let of_pay = json!({"tool_use_id": "toolu_5", "tool_name": "pay"});
    log.add_record("probe_start", Some(call), &json!(null), &of_pay);
    let failed =
        json!({"tool_use_id": "toolu_5", "tool_name": "pay", "done": true, "is_error": true});
    log.add_record("resolve", Some(call), &json!("refused"), &failed);
    let kinds = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&["--format", "json"], arguments].concat();
        let records =
            parse_json_lines(&show_log(log.text(), &arguments).assert_exit(0).stdout).into_iter();
        let kinds = records.map(|record| record["type"].as_str().unwrap().to_owned());
        kinds.collect()
    };
    assert_eq!(
        kinds(&["--tool", "pay"]),
        ["tool_call", "tool_start", "probe_start", "resolve"]
    );
    assert_eq!(kinds(&["--errors"]), ["resolve"]);
    assert_eq!(kinds(&["--errors", "--tool", "say"]), [""; 0]);
}

/// A log of a run that was killed. Its first call succeeded, the second failed, the third has no result, and the last
/// two were resolved, one as not done and one as done.
fn killed_session_log() -> LogBuilder {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (1..=5)
        .map(|at| log.call(turn, "pay", &json!({ "at": at })))
        .collect();
    for call in &calls {
        log.start(*call, "pay", 1);
    }
    log.end("tool_result", calls[0], "pay", ("ok", 1, 1));
    log.end("tool_result", calls[1], "pay", ("failed", 1, 1));
    let resolve = |done: bool| json!({"tool_use_id": "a", "tool_name": "pay", "done": done});
    log.add_record("resolve", Some(calls[3]), &json!(null), &resolve(false));
    log.add_record("resolve", Some(calls[4]), &json!("paid"), &resolve(true));
    let last = log.session();
    log.session_end(last);
    log
}

/// What a person said about a call that had no result is a line of its own.
#[test]
fn errors_shows_calls_that_ended_in_an_error_or_without_a_result() {
    let log = killed_session_log();
    let errors = show_log(log.text(), &["--errors"]).assert_exit(0).stdout;
    let (title, rest) = errors.split_once('\n').unwrap();
    assert!(title.starts_with("session of "), "{errors}");
    insta::assert_snapshot!(mask_durations(rest), @r#"

    turn 0
        0  pay                   failed, …
           toolu_3  {"at":2}
           this is failed
        0  pay                   started, no result
           toolu_4  {"at":3}
        0  pay                   started, no result
           toolu_5  {"at":4}
        0  pay                   started, no result
           toolu_6  {"at":5}

    resolved pay a: not done
    "#);
    let all = show_log(log.text(), &[]).assert_exit(0).stdout;
    assert!(all.contains("resolved pay a: done: paid"), "{all}");
}
