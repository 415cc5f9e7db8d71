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

/// A log of three sessions, of which the first two were killed. Its first call has its result in the last session, the
/// second was resolved as done, the third as not done, the fourth failed in the first session, and the fifth has no
/// result.
fn three_session_log() -> LogBuilder {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (1..=5)
        .map(|at| log.call(turn, "pay", &json!({ "at": at })))
        .collect();
    for call in &calls {
        log.start(*call, "pay", 1);
    }
    log.end("tool_result", calls[3], "pay", ("failed", 1, 1));
    log.session();
    log.end("tool_in_doubt", calls[0], "pay", ("in_doubt", 1, 1));
    log.end("tool_in_doubt", calls[1], "pay", ("in_doubt", 1, 1));
    let resolve = |done: bool| json!({"tool_use_id": "a", "tool_name": "pay", "done": done});
    log.add_record("resolve", Some(calls[0]), &json!(null), &resolve(false));
    log.add_record("resolve", Some(calls[1]), &json!("paid"), &resolve(true));
    log.add_record("resolve", Some(calls[2]), &json!(null), &resolve(false));
    let last = log.session();
    log.start(calls[0], "pay", 2);
    log.end("tool_result", calls[0], "pay", ("ok", 1, 2));
    log.session_end(last);
    log
}

/// A call that was resolved, or that a later session finished, is no longer an error.
#[test]
fn errors_shows_calls_whose_final_state_is_an_error() {
    let log = three_session_log();
    let errors = show_log(log.text(), &["--errors"]).assert_exit(0).stdout;
    let (title, rest) = errors.split_once('\n').unwrap();
    assert!(title.starts_with("session of "), "{errors}");
    insta::assert_snapshot!(mask_durations(rest), @r#"

    turn 0
        0  pay                   resolved: not done; it runs when it is asked for again
           toolu_4  {"at":3}
        0  pay                   failed, …
           toolu_5  {"at":4}
           this is failed
        0  pay                   started, no result
           toolu_6  {"at":5}
    "#);
    // Without `--errors`, the whole history is shown.
    let all = show_log(log.text(), &[]).assert_exit(0).stdout;
    assert_eq!(all.matches("started, no result").count(), 4, "{all}");
    let first = all.find("resolved pay a: not done").unwrap();
    assert!(all[..first].contains("in doubt"), "{all}");
}
