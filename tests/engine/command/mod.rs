//! Commands: what a program receives, how its output is captured, and how it is terminated.

mod output;
mod processes;
mod reapers;
mod starts;

use std::fs;

/// Waits until a process has exited. It may remain a zombie of the process that adopted it.
fn wait_until_exited(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
        std::thread::yield_now();
    }
}

fn is_zombie(pid: rustix::process::Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}
