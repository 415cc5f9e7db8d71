//! Suspending and continuing a run (Ctrl-Z and `fg`).

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::marked_run::{MarkedSandbox, response_with_calls};
use crate::support::waiting::wait_until;

/// Returns the state letter of a process, or `None` if it is gone.
fn process_state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Returns whether every program of a run is stopped.
pub fn programs_are_stopped(sandbox: &MarkedSandbox) -> bool {
    let mut alive = sandbox.marked_processes().into_iter();
    // A shell that is stopped between fork and exec waits for its stopped child in state D.
    alive.all(|child| matches!(process_state(child), None | Some('T' | 'D')))
}

/// Programs stop and continue together with toolq, and the time in between doesn't count towards timeouts.
#[test]
fn children_and_timeouts_pause_with_toolq() {
    let run = MarkedSandbox::new()
        .stdin(response_with_calls("a", &["one_second", "one_second"]))
        .start(&[]);
    run.wait_for_calls(2);
    run.signal(Signal::TSTP);
    wait_until("toolq stops", || process_state(run.pid()) == Some('T'));
    wait_until("programs stop", || programs_are_stopped(run.sandbox()));
    // Longer than the timeout of the calls.
    sleep(Duration::from_millis(2500));
    run.signal(Signal::CONT);
    let output = run.wait_for_output();
    assert_eq!(
        (output.code, output.count_status("ok")),
        (Some(0), 2),
        "{}",
        output.stdout
    );
    output.assert_log_complete();
}

/// A program that is suspended can't clean up.
#[test]
fn the_grace_period_pauses_too() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("a", &["cleans_up"]));
    let term_marker = sandbox.path_of("terminating");
    let run = sandbox.start(&[]);
    wait_until("the program gets a SIGTERM", || term_marker.exists());
    run.signal(Signal::TSTP);
    wait_until("toolq stops", || process_state(run.pid()) == Some('T'));
    // Longer than its grace period.
    sleep(Duration::from_millis(3500));
    run.signal(Signal::CONT);
    let output = run.wait_for_output();
    assert_eq!(output.statuses(), ["timeout"]);
    assert!(output.stdout.contains("cleaned"), "{}", output.stdout);
}

/// A signal to a stopped run takes effect when the run continues. Shells send both.
#[test]
fn a_suspended_run_can_be_terminated() {
    let run = MarkedSandbox::new()
        .stdin(response_with_calls("a", &["hang"; 5]))
        .start(&[]);
    run.wait_for_calls(3);
    run.signal(Signal::TSTP);
    wait_until("toolq stops", || process_state(run.pid()) == Some('T'));
    run.signal(Signal::HUP);
    run.signal(Signal::CONT);
    let output = run.wait_for_output();
    assert_eq!(
        (output.code, output.count_status("interrupted")),
        (Some(129), 3)
    );
    output.assert_log_complete();
}
