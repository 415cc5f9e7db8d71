//! Ctrl-Z and `fg`.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::started::{Marked, answer, until};

/// The letter of a process's state; none where it is gone.
fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// FAULTS 62: programs stop with toolq and go on with it, and a stop counts towards no limit.
#[test]
fn children_and_limits_stop_too() {
    let started = Marked::new()
        .stdin(answer("a", &["doze", "doze"]))
        .start(&[]);
    started.wait_for_calls(2);
    started.signal(Signal::TSTP);
    until("toolq stops", || state(started.pid()) == Some('T'));
    until("programs stop", || {
        let mut alive = started.marked().alive().into_iter();
        // A shell that is stopped between fork and exec waits (D) for its stopped child.
        alive.all(|child| matches!(state(child), None | Some('T' | 'D')))
    });
    // Longer than the limit of the calls.
    sleep(Duration::from_millis(2500));
    started.signal(Signal::CONT);
    let ended = started.end();
    assert_eq!(
        (ended.code, ended.count("ok")),
        (Some(0), 2),
        "{}",
        ended.stdout
    );
    ended.assert_log_is_whole();
}

/// FAULTS 62: the time to tidy up in is a limit as well.
#[test]
fn grace_stops_too() {
    let marked = Marked::new().stdin(answer("a", &["tidy"]));
    let asked = marked.file("asked");
    let started = marked.start(&[]);
    until("it is asked to end", || asked.exists());
    started.signal(Signal::TSTP);
    until("toolq stops", || state(started.pid()) == Some('T'));
    // Longer than its grace.
    sleep(Duration::from_millis(3500));
    started.signal(Signal::CONT);
    let ended = started.end();
    assert_eq!(ended.statuses(), ["timeout"]);
    assert!(ended.stdout.contains("tidied"), "{}", ended.stdout);
}

/// A stopped run can be ended: the signal waits for the continuation, as shells send both.
#[test]
fn a_stopped_run_can_be_ended() {
    let started = Marked::new().stdin(answer("a", &["hang"; 5])).start(&[]);
    started.wait_for_calls(3);
    started.signal(Signal::TSTP);
    until("toolq stops", || state(started.pid()) == Some('T'));
    started.signal(Signal::HUP);
    started.signal(Signal::CONT);
    let ended = started.end();
    assert_eq!((ended.code, ended.count("interrupted")), (Some(129), 3));
    ended.assert_log_is_whole();
}
