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
