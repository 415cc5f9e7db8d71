//! Queues under faults, in the manner of Jepsen: three servers, four workers, and a checker that knows the promise alone.
//!
//! Workers are killed, stopped for longer than their lease and continued; servers are killed and started again; links are cut,
//! held in both directions or in one, and let go; `submit` and `collect` are killed. What the calls did is counted where they do
//! it: each appends a line when it starts and one when it ends.
//!
//! `QUEUE_FAULTS_SECONDS` sets how long faults are caused (default: 60), and `QUEUE_FAULTS_SEED` selects which ones.
//! `.ci/queue-faults` runs for ten minutes.

mod broken_histories;
mod checker;
mod cluster;
mod collections;
mod expected;
mod fault_run;
mod fault_schedule;
mod link;
mod running_workers;
mod submissions;
mod told_doubts;

use std::time::Duration;

use crate::faults::checker::check_history;
use crate::faults::fault_run::FaultRun;
use crate::support::eprint_uncaptured;

/// How long faults are caused by default.
const DEFAULT_SECONDS: u64 = 60;

fn number_from_environment(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

#[test]
fn no_fault_makes_a_queue_break_its_promise() {
    let seconds = number_from_environment("QUEUE_FAULTS_SECONDS", DEFAULT_SECONDS);
    let Some(mut run) = FaultRun::begin(number_from_environment("QUEUE_FAULTS_SEED", 1)) else {
        return;
    };
    run.cause_faults(Duration::from_secs(seconds));
    let history = run.finish();
    let faults = run.fault_counts();
    match check_history(&history) {
        Ok(counts) => eprint_uncaptured(format_args!("queue faults: {faults}; {counts}")),
        Err(violations) => {
            let status = run.status();
            panic!(
                "queue faults: {faults}\nbroken promises (files are in {}):\n{}\n{status}",
                run.keep_files(&history).display(),
                violations.join("\n"),
            )
        }
    }
    assert!(history.lines_written > 0);
}
