use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use toolq_core::os::Process;

use crate::forge::Forge;
use crate::support::Toolq;

/// Waits until the log of a run that goes on is followed to its end.
#[test]
fn a_log_is_followed_to_its_end() {
    let mut log = Forge::new();
    // Who writes it is this test, which lives.
    let session = log.session_by(&Process::current());
    let turn = log.turn(session, 0);
    log.ran(turn, "first", "ok", 1);
    let folder = Toolq::new().file("log.jsonl", log.text());
    let path = folder.path().join("log.jsonl");
    let mut command = folder.command(&["log", "show", "-f", "log.jsonl"]);
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
    log.ran(turn, "second", "ok", 1);
    log.session_end(session);
    let more = &log.text().as_bytes()[written..];
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    // A record comes in pieces.
    for piece in more.chunks(200) {
        file.write_all(piece).unwrap();
        sleep(Duration::from_millis(5));
    }
    until("second");
    until("exit 0 after 5ms: 1 call");
    assert!(following.wait().unwrap().success());
}

/// Whoever wrote it is gone, as far as can be seen, but has it locked: it may run in a container. Then it is gone.
#[test]
fn a_log_that_nobody_writes_is_not_waited_for() {
    let mut log = Forge::new();
    let gone = Process {
        pid: 1,
        started: Some(u64::MAX),
        ..Process::current()
    };
    let session = log.session_by(&gone);
    let turn = log.turn(session, 0);
    log.ran(turn, "first", "ok", 1);
    let folder = Toolq::new().file("log.jsonl", log.take());
    let path = folder.path().join("log.jsonl");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.lock().unwrap();
    let mut command = folder.command(&["log", "show", "-f", "log.jsonl"]);
    let mut following = command.stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut until = |word: &str| {
        let mut lines = lines.by_ref().map(Result::unwrap);
        assert!(lines.any(|line| line.contains(word)), "{word}");
    };
    until("first");
    // It has looked whether somebody writes when it sleeps, or has left.
    let stat = format!("/proc/{}/stat", following.id());
    let rests = |stat: &str| stat.contains(") S ") || stat.contains(") Z ");
    while fs::read_to_string(&stat).is_ok_and(|stat| !rests(&stat)) {
        sleep(Duration::from_millis(1));
    }
    log.ran(turn, "second", "ok", 1);
    file.write_all(log.take().as_bytes()).unwrap();
    until("second");
    drop(file);
    let ended = following.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{said}");
    assert!(
        said.contains("warning: log.jsonl will not grow: its run, process 1, is gone"),
        "{said}"
    );
}

#[test]
fn a_log_that_is_taken_away_is_not_waited_for() {
    let mut log = Forge::new();
    log.session();
    let folder = Toolq::new().file("log.jsonl", log.text());
    let mut command = folder.command(&["log", "show", "-f", "log.jsonl"]);
    let mut following = command.stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("session of "));
    fs::remove_file(folder.path().join("log.jsonl")).unwrap();
    let begun = Instant::now();
    assert_eq!(following.wait().unwrap().code(), Some(4));
    assert!(begun.elapsed() < Duration::from_mins(1));
}
