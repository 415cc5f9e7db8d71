//! Readers of stdout that close the pipe or stop reading.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use rustix::process::Signal;

use super::marked_run::{MarkedSandbox, response_with_calls};
use super::support::waiting::wait_until;

/// As in `toolq run | head -n 1`, the run ends silently, as after a SIGTERM, and the log is complete.
#[test]
fn a_closed_stdout_ends_the_run() {
    for (names, flags) in [
        (
            ["echo", "hang", "hang", "hang", "hang"],
            vec!["--to", "block-lines"],
        ),
        (["hang", "hang", "hang", "echo", "echo"], vec![]),
    ] {
        let mut run = MarkedSandbox::new()
            .stdin(response_with_calls("a", &names))
            .start(&flags);
        let mut stdout = BufReader::new(run.child.stdout.take().unwrap());
        if names[0] == "echo" {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert!(line.contains("a0"));
        }
        // The call that finished made room for a fourth.
        run.wait_for_calls(if names[0] == "echo" { 4 } else { 3 });
        drop(stdout);
        let output = run.wait_for_output();
        assert_eq!((output.code, &*output.stderr), (Some(74), ""));
        assert_eq!(output.statuses().len(), 5);
        assert_eq!(
            output.count_status("interrupted"),
            3,
            "{:?}",
            output.statuses()
        );
        output.assert_log_complete();
    }
}

/// Without a stdout, the results can't be written, so nothing runs. That includes `plan` and `--help`.
#[test]
fn a_missing_stdout_is_exit_74() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("a", &["echo"]));
    for arguments in [
        &["run", "--log", "log.jsonl", "input"][..],
        &["plan", "input"],
        &["--help"],
    ] {
        let toolq = sandbox.toolq.command(arguments);
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$@" >&-"#, "sh"])
            .arg(toolq.get_program())
            .args(arguments)
            .current_dir(toolq.get_current_dir().unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(74), "{arguments:?}");
        assert!(output.stdout.is_empty() && sandbox.log_records().is_empty());
    }
}

#[test]
fn no_turn_begins_after_stdout_closes() {
    let turns = ["a", "b", "c"].map(|prefix| response_with_calls(prefix, &["hang"]));
    let mut run = MarkedSandbox::new().stdin(turns.join("\n")).start(&[]);
    run.wait_for_calls(1);
    drop(run.child.stdout.take());
    let output = run.wait_for_output();
    assert_eq!(output.code, Some(74));
    assert_eq!(output.statuses(), ["interrupted"]);
}

/// A service manager sends one signal. The results are in the log, which has its end.
#[test]
fn one_sigterm_ends_a_run_with_a_stalled_reader() {
    let mut run = MarkedSandbox::new()
        .stdin(response_with_calls("a", &["flood"]))
        .start(&["--max-output-total", "1MiB"]);
    wait_until("the pipe is full", || {
        let stdout = run.child.stdout.as_ref().unwrap();
        rustix::io::ioctl_fionread(stdout).unwrap() > 60_000
    });
    run.signal(Signal::TERM);
    wait_until("toolq exits", || run.child.try_wait().unwrap().is_some());
    let output = run.wait_for_output();
    assert_eq!(output.code, Some(74), "{}", output.stderr);
    assert!(
        output.stderr.contains("doesn't read") && output.stderr.contains("in the session log"),
        "{}",
        output.stderr
    );
    output.assert_log_complete();
}

/// A reader that keeps the pipe open without reading can block toolq, but repeated signals end it. The session is then
/// unfinished.
#[test]
fn repeated_signals_abandon_a_stalled_reader() {
    let calls = ["flood", "flood", "hang"].map(|name| response_with_calls(name, &[name]));
    let mut run = MarkedSandbox::new().stdin(calls.join("\n")).start(&[
        "--to",
        "block-lines",
        "--max-output-total",
        "1MiB",
    ]);
    // The flood may end too soon to be seen running.
    run.wait_for_record("tool_result");
    run.signal_until_exit(Signal::INT);
    let output = run.wait_for_output();
    assert_eq!(output.code, Some(130));
    // It exited midway, so the log has only complete records and no end of the session.
    let types = output.log.iter().map(|record| record["type"].as_str());
    let types: Vec<&str> = types.map(Option::unwrap).collect();
    assert_eq!(types[0], "session");
    assert!(types.contains(&"tool_result") && !types.contains(&"session_end"));
}
