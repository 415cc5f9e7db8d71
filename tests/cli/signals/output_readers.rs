//! Readers of stdout and stderr that close the pipe or stop reading.

use std::io::{self, BufRead as _, BufReader, PipeWriter, Write as _};
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::fcntl_getpipe_size;
use rustix::process::Signal;

use super::marked_run::{MarkedSandbox, response_with_calls};
use crate::support::waiting::wait_until;

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

/// Nobody would read its results.
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

/// While toolq waits for a reader, other calls are running, and end in time.
#[test]
fn a_stalled_reader_of_stdout_delays_no_timeout() {
    let names = ["echo", "cleans_up"];
    assert_no_delay(Command::stdout, 0, &["--to", "block-lines"], &names);
}

/// A running call still times out, and a signal ends the run.
#[test]
fn a_stalled_reader_of_stderr_delays_no_timeout() {
    // There is room for some lines of progress, but not for those of all calls.
    let names = [&["cleans_up"][..], &["echo"; 200]].concat();
    assert_no_delay(Command::stderr, 5_000, &["--progress", "plain"], &names);
}

/// Runs these calls with an output in which there is room for this many bytes. A call that cleans up does so all the same, and a
/// signal ends the run.
fn assert_no_delay(
    redirect: impl FnOnce(&mut Command, PipeWriter) -> &mut Command,
    room_bytes: usize,
    flags: &[&str],
    names: &[&str],
) {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("a", names));
    let (reader, mut writer) = io::pipe().unwrap();
    let filler = fcntl_getpipe_size(&writer).unwrap() - room_bytes;
    writer.write_all(&vec![b'.'; filler]).unwrap();
    let watched = writer.try_clone().unwrap();
    let mut command = sandbox.command(flags);
    let child = redirect(&mut command, writer).spawn().unwrap();
    drop(command);
    let mut run = sandbox.into_run(child);
    wait_until("the pipe is full", || {
        let mut polled = [PollFd::new(&watched, PollFlags::OUT)];
        poll(&mut polled, Some(&Timespec::default())).unwrap() == 0
    });
    let terminating = run.sandbox().path_of("terminating");
    wait_until("the call has timed out", || terminating.exists());
    run.signal_until_exit(Signal::TERM);
    drop(reader);
    let code = run.wait_for_output().code;
    // The first signal may already have let toolq give up the reader.
    assert!([Some(74), Some(143)].contains(&code), "{code:?}");
}
