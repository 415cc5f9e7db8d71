//! SIGKILL of toolq itself: its programs may clean up, but not for long.

use std::time::Duration;

use rustix::process::Signal;

use super::marked_run::{MarkedSandbox, response_with_calls};
use super::suspend::programs_are_stopped;
use crate::support::waiting::wait_until;

/// A program that removes its lock file on SIGTERM, as git does, leaves no lock file that would fail the resumed run.
#[test]
fn a_killed_run_lets_its_programs_clean_up() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("t", &["holds_lock"]));
    let run = sandbox.start(&[]);
    let lock = run.sandbox().path_of("lock");
    wait_until("the program holds its lock", || lock.exists());
    run.signal(Signal::KILL);
    wait_until("the lock is removed", || !lock.exists());
    assert_eq!(run.wait_for_output().code, None);
}

/// A suspended program is resumed, since only then can it clean up.
#[test]
fn a_killed_run_resumes_suspended_programs_so_that_they_clean_up() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("t", &["holds_lock"]));
    let run = sandbox.start(&[]);
    let lock = run.sandbox().path_of("lock");
    wait_until("the program holds its lock", || lock.exists());
    run.signal(Signal::TSTP);
    wait_until("the programs stop", || programs_are_stopped(run.sandbox()));
    run.signal(Signal::KILL);
    wait_until("the lock is removed", || !lock.exists());
    run.wait_for_output();
}

/// The grace period of a killed run is capped: a program that ignores SIGTERM doesn't get its own 60 seconds.
#[test]
fn what_ignores_term_does_not_outlive_a_killed_run() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("t", &["ignores_term"; 3]));
    let run = sandbox.start(&[]);
    run.wait_for_calls(3);
    run.signal(Signal::KILL);
    let killed_at = std::time::Instant::now();
    run.wait_for_output();
    assert!(killed_at.elapsed() > Duration::from_secs(1));
}
