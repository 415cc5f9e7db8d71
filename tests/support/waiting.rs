//! Waits for conditions.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for what surely happens, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until the condition is true. Panics after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn is_running(pid: &str) -> bool {
    let probe = Command::new("kill").args(["-0", pid]).output().unwrap();
    probe.status.success()
}

#[track_caller]
pub fn wait_until_gone(pids: &[String]) {
    wait_until("nothing is left", || {
        !pids.iter().any(|pid| is_running(pid))
    });
}
