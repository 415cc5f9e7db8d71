//! Queues under faults, in the manner of Jepsen: three servers, four workers, and a checker that knows the promise alone.
//!
//! Workers are killed, stopped for longer than their lease and continued; servers are killed and started again; links are cut,
//! held in both directions or in one, and let go; `submit` and `collect` are killed. What the calls did is counted where they do
//! it: each appends a line when it starts and one when it ends.
//!
//! `QUEUE_FAULTS_SECONDS` sets how long faults are caused (default: 60), and `QUEUE_FAULTS_SEED` selects which ones.
//! `.ci/queue-faults` runs for ten minutes.

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
use crate::faults::fault_run::{FaultRun, FaultRunSettings};
use crate::support::eprint_uncaptured;

/// How long faults are caused by default.
const DEFAULT_SECONDS: u64 = 60;
/// How long to look for a bug that was planted.
const MAX_BUG_SECONDS: u64 = 240;

fn number_from_environment(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

#[test]
fn no_fault_makes_a_queue_break_its_promise() {
    let settings = FaultRunSettings {
        servers: 3,
        seed: number_from_environment("QUEUE_FAULTS_SEED", 1),
        open_turns: 30,
        max_deliveries: 100,
        bug: None,
    };
    let seconds = number_from_environment("QUEUE_FAULTS_SECONDS", DEFAULT_SECONDS);
    let Some(mut run) = FaultRun::begin(settings) else {
        return;
    };
    run.cause_faults(Duration::from_secs(seconds), || false);
    let history = run.finish();
    let faults = run.fault_counts();
    match check_history(&history) {
        Ok(counts) => eprint_uncaptured(format_args!("queue faults: {faults}; {counts}")),
        Err(violations) => {
            let status = run.status();
            panic!(
                "queue faults: {faults}\nbroken promises (files are in {}):\n{}\n{status}",
                run.keep_files().display(),
                violations.join("\n"),
            )
        }
    }
    assert!(history.lines_written > 0);
}

/// Causes faults until the checker finds what a planted bug breaks.
fn find_planted_bug(bug: &'static str, expected: &[&str]) {
    let settings = FaultRunSettings {
        servers: 1,
        seed: 7,
        open_turns: 4,
        // A turn whose log is damaged is handed back until then. Only its answer makes the checker look at the log.
        max_deliveries: 8,
        bug: Some(bug),
    };
    let Some(mut run) = FaultRun::begin(settings) else {
        return;
    };
    let mut found = Vec::new();
    let mut finds = |run_so_far: &mut FaultRun| {
        found = check_history(&run_so_far.history_so_far())
            .err()
            .unwrap_or_default();
        let is_expected = |violation: &String| expected.iter().any(|text| violation.contains(text));
        found.iter().any(is_expected)
    };
    run.cause_faults_until(Duration::from_secs(MAX_BUG_SECONDS), &mut finds);
    let is_expected = |violation: &&String| expected.iter().any(|text| violation.contains(text));
    let violation = found.iter().find(is_expected);
    let faults = run.fault_counts();
    let violation = violation.unwrap_or_else(|| {
        let status = run.status();
        let files = run.keep_files();
        panic!(
            "{bug} was not found: {faults}\n{found:?} (files are in {}):\n{status}",
            files.display()
        )
    });
    eprint_uncaptured(format_args!(
        "queue faults: found {bug} after {faults}: {violation}"
    ));
}

#[test]
fn the_checker_finds_records_without_their_expected_sequence() {
    find_planted_bug("no-expected-sequence", &["started 2 times", "isn't intact"]);
}

#[test]
fn the_checker_finds_a_start_before_the_yes_of_the_stream() {
    find_planted_bug("start-before-yes", &["started 2 times", "isn't on record"]);
}

#[test]
fn the_checker_finds_a_resume_that_reads_no_records() {
    find_planted_bug("resume-without-records", &["started 2 times"]);
}

#[test]
fn the_checker_finds_answers_out_of_order() {
    find_planted_bug("collect-out-of-order", &["out of order"]);
}

#[test]
fn the_checker_finds_a_lease_that_nobody_looks_at() {
    find_planted_bug("no-lease", &["after another worker had taken over"]);
}
