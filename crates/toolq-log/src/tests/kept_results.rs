//! Which results of a log may answer calls of later runs, against a simpler statement of the rule.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::listed_records::{ListedRecord, start_of, visit_listed};
use super::*;
use crate::resume::KeptResults;

/// Paths that calls lock, two of which are below another one. `None` is a call without locks.
const LOCKED: [Option<&str>; 5] = [None, Some("/d"), Some("/d/a"), Some("/d/b"), Some("/else")];

/// What a log says, by the place in [`LOCKED`] that a call locks.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A read ends.
    Read(usize),
    /// A call that changes something starts.
    Begin(usize),
    /// It ends: and whether it has changed more than its locks say.
    End(usize, bool),
    /// The run was killed or has ended, and another one begins.
    NextRun,
}

fn any_step() -> impl Strategy<Value = Step> {
    let place = || 0..LOCKED.len();
    prop_oneof![
        4 => place().prop_map(Step::Read),
        2 => place().prop_map(Step::Begin),
        2 => (place(), prop::bool::weighted(0.1)).prop_map(|(at, more)| Step::End(at, more)),
        1 => Just(Step::NextRun),
    ]
}

fn concerns(change: usize, read: usize) -> bool {
    let (Some(changed), Some(read)) = (LOCKED[change], LOCKED[read]) else {
        return true;
    };
    let is_at_or_above =
        |one: &str, other: &str| one == other || other.starts_with(&format!("{one}/"));
    is_at_or_above(changed, read) || is_at_or_above(read, changed)
}

fn locks(place: usize, mode: &str) -> Value {
    match LOCKED[place] {
        Some(path) => json!({"locks": {mode: [{"path": path}]}}),
        None => json!({}),
    }
}

fn record_of(number: usize, step: Step, open: &[Option<u128>]) -> Option<ListedRecord> {
    let id = 1_000 + number as u128;
    Some(match step {
        Step::Read(place) => {
            let mut kept = locks(place, "read");
            kept["digest"] = json!(format!("{place}"));
            (
                id,
                "tool_result",
                id + 500_000,
                json!({"status": "ok", "kept": kept}),
            )
        }
        Step::Begin(place) => start_of(id, id + 500_000, &locks(place, "write")),
        Step::End(place, more) => {
            let metadata = json!({"status": "failed", "changed_more": more});
            (id, "tool_result", open[place]?, metadata)
        }
        Step::NextRun => (id, "session", 0, json!({})),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_result_in_the_log_counts_as_long_as_no_call_after_it_concerned_it(steps in prop::collection::vec(any_step(), 0..30)) {
        let mut open: Vec<Option<u128>> = vec![None; LOCKED.len()];
        let (mut records, mut found) = (Vec::new(), BTreeSet::new());
        for (number, step) in steps.into_iter().enumerate() {
            let is_double = matches!(step, Step::Begin(place) if open[place].is_some());
            let record = record_of(number, step, &open).filter(|_| !is_double);
            let Some(record) = record else { continue };
            match step {
                Step::Read(place) => {
                    let mut running = (0..LOCKED.len()).filter(|change| open[*change].is_some());
                    if running.all(|change| !concerns(change, place)) {
                        found.insert(place);
                    }
                }
                Step::Begin(place) => {
                    open[place] = Some(record.2);
                    found.retain(|read| !concerns(place, *read));
                }
                Step::End(place, more) => {
                    open[place] = None;
                    found.retain(|read| !more && !concerns(place, *read));
                }
                Step::NextRun => {
                    if open.iter().any(Option::is_some) {
                        found.clear();
                    }
                    open.fill(None);
                }
            }
            records.push(record);
            let mut kept = KeptResults::default();
            visit_listed(&records, |record, end| kept.apply_record(record, end).unwrap());
            let digests: BTreeSet<usize> = kept
                .list()
                .iter()
                .map(|entry| entry.digest.parse().unwrap())
                .collect();
            // The next run is there before it uses anything: what is still open was killed then.
            let expected = if open.iter().any(Option::is_some) {
                BTreeSet::new()
            } else {
                found.clone()
            };
            prop_assert_eq!(digests, expected, "{:?}", records);
        }
    }
}

/// A result that is taken again is young again.
#[test]
fn the_results_that_were_taken_first_are_forgotten_first() {
    const MAX_RESULTS: u128 = 10_000;
    let taken = (0..MAX_RESULTS).chain([0, MAX_RESULTS]);
    let records: Vec<ListedRecord> = (1..)
        .zip(taken)
        .map(|(id, digest)| {
            let metadata = json!({"kept": {"digest": digest.to_string()}});
            (id, "tool_result", id + 500_000, metadata)
        })
        .collect();
    let mut kept = KeptResults::default();
    visit_listed(&records, |record, end| {
        kept.apply_record(record, end).unwrap();
    });
    let digests: Vec<String> = kept.list().into_iter().map(|entry| entry.digest).collect();
    let expected = (2..MAX_RESULTS).chain([0, MAX_RESULTS]);
    let expected: Vec<String> = expected.map(|digest| digest.to_string()).collect();
    assert_eq!(digests, expected);
}
