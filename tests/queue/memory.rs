//! What a worker holds doesn't grow with what it has done.

use std::fs;

use crate::queue_sandbox::{QueueProcess, QueueSandbox};
use crate::support::waiting::wait_until;

/// Each result is a quarter of a mebibyte, so that it shows if results are kept.
const TOOLS: &str = "
version: 1
tools:
  write: {input_schema: {type: object}, effect: read, max_output: 1MiB, command: [cat, large]}
";
const RESULT_BYTES: usize = 256 << 10;
/// How many turns there are before the first look.
const FIRST_TURNS: usize = 40;
/// How many there are between the first look and the second.
const MORE_TURNS: usize = 160;
/// How much more it may hold then. If it kept the results, it would be 40 MiB.
const MAX_GROWTH_KB: u64 = 12 << 10;

fn submit_turns(sandbox: &QueueSandbox, name: &str, count: usize) {
    let calls = vec![("write", name); count];
    sandbox.write_turns(name, &calls);
    sandbox.submit(name);
}

/// Waits until the worker has answered all turns, and returns how much memory it holds.
fn memory_after(sandbox: &QueueSandbox, worker: &QueueProcess) -> u64 {
    wait_until("the turns are answered", || {
        let status = sandbox.status();
        status["waiting"] == 0 && status["running"] == 0
    });
    let status = fs::read_to_string(format!("/proc/{}/status", worker.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_holds_no_more_after_many_turns() {
    use rustix::process::Signal;
    let Some(sandbox) = QueueSandbox::with_tools(TOOLS) else {
        return;
    };
    sandbox.write("large", &"x".repeat(RESULT_BYTES));
    let worker = sandbox.start_worker(&[]);
    submit_turns(&sandbox, "first", FIRST_TURNS);
    let before = memory_after(&sandbox, &worker);
    submit_turns(&sandbox, "more", MORE_TURNS);
    let after = memory_after(&sandbox, &worker);
    worker.end(Signal::TERM);
    assert!(
        after < before + MAX_GROWTH_KB,
        "{before} kB, then {after} kB"
    );
}
