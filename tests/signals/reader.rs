//! Somebody who stops reading, by going away or by standing still.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use rustix::process::Signal;

use super::started::{Marked, answer};

/// FAULTS 63: `toolq run | head -n 1`: ended quietly as at TERM, and all is in the log.
#[test]
fn a_reader_that_leaves_ends_the_run() {
    for (names, flags) in [
        (
            ["echo", "hang", "hang", "hang", "hang"],
            vec!["--to", "block-lines"],
        ),
        (["hang", "hang", "hang", "echo", "echo"], vec![]),
    ] {
        let mut started = Marked::new().stdin(answer("a", &names)).start(&flags);
        let mut stdout = BufReader::new(started.child.stdout.take().unwrap());
        if names[0] == "echo" {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert!(line.contains("a0"));
        }
        // The one that ended made room for a fourth.
        started.wait_for_calls(if names[0] == "echo" { 4 } else { 3 });
        drop(stdout);
        let ended = started.end();
        assert_eq!((ended.code, &*ended.stderr), (Some(74), ""));
        assert_eq!(ended.statuses().len(), 5);
        assert_eq!(ended.count("interrupted"), 3, "{:?}", ended.statuses());
        ended.assert_log_is_whole();
    }
}

/// Without a stdout nothing is done whose result could go nowhere; help and plans have none either.
#[test]
fn who_has_no_stdout_is_told_so() {
    let marked = Marked::new().stdin(answer("a", &["echo"]));
    for arguments in [
        &["run", "--log", "log.jsonl", "input"][..],
        &["plan", "input"],
        &["--help"],
    ] {
        let toolq = marked.toolq.command(arguments);
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$@" >&-"#, "sh"])
            .arg(toolq.get_program())
            .args(arguments)
            .current_dir(toolq.get_current_dir().unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(74), "{arguments:?}");
        assert!(output.stdout.is_empty() && marked.log().is_empty());
    }
}

/// Turns that nobody would read don't begin.
#[test]
fn later_turns_do_not_begin() {
    let turns = ["a", "b", "c"].map(|prefix| answer(prefix, &["hang"]));
    let mut started = Marked::new().stdin(turns.join("\n")).start(&[]);
    started.wait_for_calls(1);
    drop(started.child.stdout.take());
    let ended = started.end();
    assert_eq!(ended.code, Some(74));
    assert_eq!(ended.statuses(), ["interrupted"]);
}

/// A reader that holds the pipe and reads nothing can hold toolq, but not against somebody who insists. The log is that of
/// an unfinished session.
#[test]
fn a_reader_that_stands_still_is_left() {
    let calls = ["flood", "flood", "hang"].map(|name| answer(name, &[name]));
    let mut started = Marked::new().stdin(calls.join("\n")).start(&[
        "--to",
        "block-lines",
        "--max-output-total",
        "1MiB",
    ]);
    // The flood may have ended long before anybody could see it run.
    started.wait_for_record("tool_result");
    started.insist_unread(Signal::INT);
    let ended = started.end();
    assert_eq!(ended.code, Some(130));
    // It left in the middle, and its log says no more than it knows: nothing is half, and there is no end.
    let types = ended.log.iter().map(|record| record["type"].as_str());
    let types: Vec<&str> = types.map(Option::unwrap).collect();
    assert_eq!(types[0], "session");
    assert!(types.contains(&"tool_result") && !types.contains(&"session_end"));
}
