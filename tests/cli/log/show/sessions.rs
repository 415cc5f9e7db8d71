//! Logs of runs that were killed or resumed.

use serde_json::json;

use crate::log::log_builder::LogBuilder;
use crate::log::sandbox_with_five_calls;
use crate::log::show::show_log;
use crate::support::CliSandbox;

/// A log without an end isn't damaged.
#[test]
fn a_killed_run_is_shown_to_its_last_record() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    let started_call = log.call(turn, "pay", &json!({}));
    log.call(turn, "wait", &json!({}));
    log.start(started_call, "pay", 1);
    let torn = format!("{}{{\"seq\":8,", log.text());
    let ran = show_log(&torn, &[]).assert_exit(0);
    assert!(
        ran.stderr
            .contains("warning: log.jsonl is incomplete at line 9: "),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout
            .contains("pay                   started, no result"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("wait                  not started, no result"),
        "{}",
        ran.stdout
    );
    let errors = show_log(&torn, &["--errors", "-q"]).assert_exit(0);
    assert!(
        errors.stdout.contains("pay") && !errors.stdout.contains("say"),
        "{}",
        errors.stdout
    );
    assert_eq!(errors.stderr, "");
}

/// A resumed run continues calls of the previous one. They are shown again, below its own title.
#[test]
fn a_resumed_run_shows_its_calls_again() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (0..2)
        .map(|at| log.call(turn, "pay", &json!({ "at": at })))
        .collect();
    log.start(calls[0], "pay", 1);
    let resolve =
        json!({"tool_use_id": "toolu_2", "tool_name": "pay", "done": true, "note": "seen"});
    log.add_record("resolve", Some(calls[0]), &json!("paid 5"), &resolve);
    let session = log.session();
    log.start(calls[1], "pay", 1);
    log.end("tool_result", calls[1], "pay", ("ok", 1, 1));
    log.session_end(session);
    let text = show_log(log.text(), &[]).assert_exit(0).stdout;
    let (first, second) = text.split_once("\nsession of ").unwrap();
    assert!(
        first.contains("started, no result") && first.contains("not started, no"),
        "{first}"
    );
    assert!(
        text.contains("resolved pay toolu_2: done: paid 5 (seen)"),
        "{text}"
    );
    assert!(
        second.contains("turn 0\n") && second.contains("{\"at\":1}"),
        "{second}"
    );
    assert!(
        second.contains("this is ok") && !second.contains("{\"at\":0}"),
        "{second}"
    );
}

#[test]
fn the_latest_session_is_the_default() {
    let script = "cat > in; \"$TOOLQ\" run -q < in > /dev/null; echo '{\"type\":\"tool_use\",\"id\":\"z\",\"name\":\"last\",\"input\":{}}' | \"$TOOLQ\" run -q > /dev/null; \"$TOOLQ\" log show -v";
    let ran = sandbox_with_five_calls().run_shell(script).assert_exit(0);
    assert!(
        ran.stdout.contains("last") && !ran.stdout.contains("missing"),
        "{}",
        ran.stdout
    );
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.ends_with(".jsonl:"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("note: latest session: "),
        "{}",
        ran.stderr
    );
    let ran = CliSandbox::new().run(&["log", "show"]).assert_exit(4);
    assert!(
        ran.stderr.contains("no session log found in "),
        "{}",
        ran.stderr
    );
}
