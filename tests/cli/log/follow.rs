//! `toolq log show --follow`.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use toolq_core::os::ProcessIdentity;

use crate::log::log_builder::LogBuilder;
use crate::support::CliSandbox;

#[test]
fn a_log_is_followed_to_its_end() {
    let mut log = LogBuilder::new();
    // The log names this test's process as its writer, which is alive.
    let session = log.session_of_process(&ProcessIdentity::current());
    let turn = log.turn(session, 0);
    log.finished_call(turn, "first", "ok", 1);
    let sandbox = CliSandbox::new().file("log.jsonl", log.text());
    let path = sandbox.path().join("log.jsonl");
    let mut command = sandbox.command(&["log", "show", "-f", "log.jsonl"]);
    let mut following = command.stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut until = |word: &str| {
        let found = lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(word));
        assert!(found.is_some(), "{word}");
    };
    until("first");
    let written = log.text().len();
    log.finished_call(turn, "second", "ok", 1);
    log.session_end(session);
    let appended = &log.text().as_bytes()[written..];
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    // Records may arrive in pieces.
    for chunk in appended.chunks(200) {
        file.write_all(chunk).unwrap();
        sleep(Duration::from_millis(5));
    }
    until("second");
    until("exit 0 after 5ms: 1 call");
    assert!(following.wait().unwrap().success());
}

/// A writer that can't be seen but holds the lock may be running in another container, so it is followed until it
/// releases the lock.
#[test]
fn a_log_without_a_writer_is_not_waited_for() {
    let mut log = LogBuilder::new();
    let dead_process = ProcessIdentity {
        pid: 1,
        start_ticks: Some(u64::MAX),
        ..ProcessIdentity::current()
    };
    let session = log.session_of_process(&dead_process);
    let turn = log.turn(session, 0);
    log.finished_call(turn, "first", "ok", 1);
    let sandbox = CliSandbox::new().file("log.jsonl", log.take_text());
    let path = sandbox.path().join("log.jsonl");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.lock().unwrap();
    let mut command = sandbox.command(&["log", "show", "-f", "log.jsonl"]);
    let mut following = command.stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut until = |word: &str| {
        let mut lines = lines.by_ref().map(Result::unwrap);
        assert!(lines.any(|line| line.contains(word)), "{word}");
    };
    until("first");
    // Once it sleeps or has exited, it has checked whether there is a writer.
    let stat = format!("/proc/{}/stat", following.id());
    let is_idle = |stat: &str| stat.contains(") S ") || stat.contains(") Z ");
    while fs::read_to_string(&stat).is_ok_and(|stat| !is_idle(&stat)) {
        sleep(Duration::from_millis(1));
    }
    log.finished_call(turn, "second", "ok", 1);
    file.write_all(log.take_text().as_bytes()).unwrap();
    until("second");
    drop(file);
    let ended = following.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{stderr}");
    assert!(
        stderr.contains("warning: stopped following log.jsonl: its process 1 is gone"),
        "{stderr}"
    );
}

#[test]
fn a_deleted_log_is_not_waited_for() {
    let mut log = LogBuilder::new();
    log.session();
    let sandbox = CliSandbox::new().file("log.jsonl", log.text());
    let mut command = sandbox.command(&["log", "show", "-f", "log.jsonl"]);
    let mut following = command.stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("session of "));
    fs::remove_file(sandbox.path().join("log.jsonl")).unwrap();
    assert_eq!(following.wait().unwrap().code(), Some(4));
}
