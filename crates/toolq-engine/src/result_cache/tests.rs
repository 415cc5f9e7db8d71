use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::value::RawValue;
use toolq_core::types::{
    CachePolicy, CallLock, ClientContent, LockMode, LockedResource, ResultContent, Tool, Verdict,
};
use toolq_testing::{accepted_call, sample_call, sample_tool, success_outcome};

use super::*;
use super::{ENTRY_BYTES, MAX_TOTAL_BYTES};

pub(super) const ROOT: &str = "/nowhere";

pub(super) fn read_call(input: &str) -> AcceptedCall {
    let tool = Tool {
        cache: Some(CachePolicy {
            max_age: Duration::from_mins(1),
        }),
        effect: Effect::Read,
        ..sample_tool("read")
    };
    match accepted_call(0, tool, true, input).verdict {
        Verdict::Accepted(accepted) => *accepted,
        Verdict::Rejected(rejection) => panic!("{rejection:?}"),
    }
}

pub(super) fn call_ref() -> CallRef {
    CallRef::new(&sample_call(0, "read", "{}"), None)
}

fn age_of(found: Option<Outcome>) -> Option<Duration> {
    let outcome = found?;
    Some(outcome.captured()?.cached.as_ref()?.age)
}

#[test]
fn a_result_is_found_until_it_is_too_old() {
    let (cache, call) = (SharedResultCache::default(), read_call(r#"{"a":1}"#));
    let begin = Moment::now();
    let after = |seconds| Moment {
        monotonic: begin.monotonic + Duration::from_secs(seconds),
        ..begin
    };
    let ticket = cache.ticket(&call, ROOT.as_ref()).unwrap();
    cache.keep_at(begin, &ticket, &call_ref(), &success_outcome("one"));
    let age = age_of(cache.find_at(after(60), &call, ROOT.as_ref()));
    assert_eq!(age, Some(Duration::from_mins(1)));
    let other = read_call(r#"{"a":2}"#);
    assert!(cache.find_at(after(1), &other, ROOT.as_ref()).is_none());
    let mut changed = call.clone();
    Arc::make_mut(&mut changed.tool).max_output += 1;
    assert!(cache.find_at(after(1), &changed, ROOT.as_ref()).is_none());
    assert!(cache.find_at(after(61), &call, ROOT.as_ref()).is_none());
    assert!(cache.find_at(after(1), &call, ROOT.as_ref()).is_none());
    // The machine slept for an hour, or the clock was set back.
    let ticket = cache.ticket(&call, ROOT.as_ref()).unwrap();
    cache.keep_at(begin, &ticket, &call_ref(), &success_outcome("one"));
    let hour = Duration::from_hours(1);
    let earlier = Moment {
        system: begin.system - hour,
        ..after(7)
    };
    let age = age_of(cache.find_at(earlier, &call, ROOT.as_ref()));
    assert_eq!(age, Some(Duration::from_secs(7)));
    let slept = Moment {
        system: begin.system + hour,
        ..begin
    };
    assert!(cache.find_at(slept, &call, ROOT.as_ref()).is_none());
}

/// A result that was read before a change, or while something changed, is never found after it.
#[test]
fn a_change_empties_the_cache_and_refuses_what_is_being_read() {
    let (cache, call) = (SharedResultCache::default(), read_call("{}"));
    let mut writer = call.clone();
    Arc::make_mut(&mut writer.tool).effect = Effect::Idempotent;
    let ticket = |cache: &SharedResultCache| cache.ticket(&call, ROOT.as_ref()).unwrap();
    let first = ticket(&cache);
    cache.keep(&first, &call_ref(), &success_outcome("before"));
    cache.note_change(&call, ROOT.as_ref());
    assert!(
        cache.find(&call, ROOT.as_ref()).is_some(),
        "a read changes nothing"
    );
    cache.note_change(&writer, ROOT.as_ref());
    let during = ticket(&cache);
    cache.note_change(&writer, ROOT.as_ref());
    cache.keep(&during, &call_ref(), &success_outcome("during"));
    assert!(cache.find(&call, ROOT.as_ref()).is_none());
}

pub(super) fn with_lock(mode: LockMode, name: &str, mut accepted: AcceptedCall) -> AcceptedCall {
    let lock = CallLock {
        name: name.to_owned(),
        mode,
        resource: LockedResource::Text(name.to_owned()),
    };
    accepted.locks = Some(vec![lock].into());
    if mode == LockMode::Write {
        Arc::make_mut(&mut accepted.tool).effect = Effect::Write;
    }
    accepted
}

/// Locks tell that a change doesn't touch what was read, if both calls have some; also for what is just being read.
#[test]
fn with_locks_only_what_they_meet_is_removed() {
    let cache = SharedResultCache::default();
    let read = |name| with_lock(LockMode::Read, name, read_call("{}"));
    let write = |name| with_lock(LockMode::Write, name, read_call("{}"));
    let (one, other, unlocked) = (read("one"), read("other"), read_call("{}"));
    let ticket = |call: &AcceptedCall| cache.ticket(call, ROOT.as_ref()).unwrap();
    let found = |call: &AcceptedCall| cache.find(call, ROOT.as_ref()).is_some();
    for call in [&one, &other, &unlocked] {
        cache.keep(&ticket(call), &call_ref(), &success_outcome("before"));
    }
    cache.note_change(&write("one"), ROOT.as_ref());
    assert_eq!([&one, &other, &unlocked].map(found), [false, true, false]);
    let (changed, unchanged) = (ticket(&one), ticket(&other));
    cache.note_change(&write("one"), ROOT.as_ref());
    cache.keep(&changed, &call_ref(), &success_outcome("during"));
    cache.keep(&unchanged, &call_ref(), &success_outcome("during"));
    assert_eq!([&one, &other].map(found), [false, true]);
    let mut writer = unlocked.clone();
    Arc::make_mut(&mut writer.tool).effect = Effect::Write;
    cache.note_change(&writer, ROOT.as_ref());
    assert!(!found(&other), "nothing says what it changes");
    drop((changed, unchanged));
    ticket(&one);
    assert_eq!(cache.0.lock().running.len(), 1, "tickets don't pile up");
}

/// A call's path may lead elsewhere when it starts than when it was checked. It may change what is at either place.
#[test]
fn a_change_concerns_where_its_paths_led_and_where_they_lead_now() {
    let cache = SharedResultCache::default();
    let lock = |mode, path: &str, resource: &str| CallLock {
        name: format!("file:{path}"),
        mode,
        resource: LockedResource::Path(resource.into()),
    };
    let reads = ["/nowhere/then", "/nowhere/now", "/nowhere/else"].map(|path| {
        let mut call = read_call("{}");
        call.locks = Some(vec![lock(LockMode::Read, path, path)].into());
        call
    });
    let found = |call: &AcceptedCall| cache.find(call, ROOT.as_ref()).is_some();
    let keep = || {
        for call in &reads {
            let ticket = cache.ticket(call, ROOT.as_ref()).unwrap();
            cache.keep(&ticket, &call_ref(), &success_outcome("before"));
        }
    };
    let mut writer = read_call("{}");
    Arc::make_mut(&mut writer.tool).effect = Effect::Write;
    writer.locks = Some(vec![lock(LockMode::Write, "/nowhere/now", "/nowhere/then")].into());
    keep();
    cache.note_change(&writer, ROOT.as_ref());
    assert_eq!(reads.each_ref().map(found), [false, false, true]);
    writer.locks = Some(vec![lock(LockMode::Write, "/nowhere/now", "/nowhere/now")].into());
    keep();
    cache.note_change(&writer, ROOT.as_ref());
    assert_eq!(reads.each_ref().map(found), [true, false, true]);
}

#[test]
fn only_complete_successes_are_kept_and_memory_is_bounded() {
    let cache = SharedResultCache::default();
    let keep = |input: &str, outcome: &Outcome| {
        let call = read_call(input);
        let ticket = cache.ticket(&call, ROOT.as_ref()).unwrap();
        cache.keep(&ticket, &call_ref(), outcome);
        cache.find(&call, ROOT.as_ref()).is_some()
    };
    assert!(!keep("{}", &Outcome::NoBacking));
    let mut cut = success_outcome("cut");
    cut.captured_mut().unwrap().cut_bytes = 1;
    assert!(!keep("{}", &cut));
    let large = success_outcome(&"x".repeat(MAX_TOTAL_BYTES / 4 - ENTRY_BYTES));
    for number in 0..20 {
        assert!(keep(&format!(r#"{{"n":{number}}}"#), &large));
    }
    // Four fill it to the last byte.
    let cached = cache.0.lock().entries.by_key.len();
    assert_eq!(
        (cached, cache.0.lock().entries.total_bytes),
        (4, MAX_TOTAL_BYTES)
    );
    assert!(!keep(
        "[]",
        &success_outcome(&"x".repeat(MAX_TOTAL_BYTES + 1))
    ));
}

/// What happens to calls, by number: each input is a call of its own.
#[derive(Debug, Clone, Copy)]
enum Step {
    StartRead(usize),
    EndRead(usize),
    StartWrite(usize),
    EndWrite(usize),
}

/// Paths that calls lock, two of which are below another one. `None` is a call without locks.
const LOCKED: [Option<&str>; 5] = [None, Some("/d"), Some("/d/a"), Some("/d/b"), Some("/else")];

fn locked_call(number: usize, mode: LockMode) -> AcceptedCall {
    let mut call = read_call(&format!(r#"{{"n":{number}}}"#));
    if mode == LockMode::Write {
        Arc::make_mut(&mut call.tool).effect = Effect::Write;
    }
    let lock = |path: &str| CallLock {
        name: format!("file:{path}"),
        mode,
        resource: LockedResource::Path(path.into()),
    };
    call.locks = LOCKED[number].map(|path| vec![lock(path)].into());
    call
}

/// The rule in other words: a change concerns everything, unless both say what it is about, and neither is at or above the
/// other.
fn concerns(write: usize, read: usize) -> bool {
    match (LOCKED[write], LOCKED[read]) {
        (Some(written), Some(read)) => {
            let is_at_or_above =
                |one: &str, other: &str| one == other || other.starts_with(&format!("{one}/"));
            is_at_or_above(written, read) || is_at_or_above(read, written)
        }
        _ => true,
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    (0..4_usize, 0..LOCKED.len()).prop_map(|(kind, call)| match kind {
        0 => Step::StartRead(call),
        1 => Step::EndRead(call),
        2 => Step::StartWrite(call),
        _ => Step::EndWrite(call),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// For any interleaving, a result is found exactly if no change since the start of its call concerned it.
    #[test]
    fn a_result_is_found_as_long_as_no_change_concerned_it(steps in prop::collection::vec(any_step(), 0..40)) {
        let cache = SharedResultCache::default();
        let root: &Path = ROOT.as_ref();
        let (mut tickets, mut running, mut found) = (HashMap::new(), Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::StartRead(call) => {
                    tickets.insert(call, cache.ticket(&locked_call(call, LockMode::Read), root).unwrap());
                    running.retain(|other| *other != call);
                    running.push(call);
                }
                Step::EndRead(call) => {
                    if let Some(ticket) = tickets.remove(&call) {
                        cache.keep(&ticket, &call_ref(), &success_outcome("read"));
                    }
                    if running.contains(&call) {
                        running.retain(|other| *other != call);
                        found.push(call);
                    }
                }
                Step::StartWrite(call) | Step::EndWrite(call) => {
                    cache.note_change(&locked_call(call, LockMode::Write), root);
                    running.retain(|read| !concerns(call, *read));
                    found.retain(|read| !concerns(call, *read));
                }
            }
            for call in 0..LOCKED.len() {
                let is_found = cache.find(&locked_call(call, LockMode::Read), root).is_some();
                prop_assert_eq!(is_found, found.contains(&call), "call {}", call);
            }
        }
    }
}

/// Reads that run at the same time don't take each other's tickets, and reads that have ended leave no tickets.
#[test]
fn each_of_several_reads_at_once_is_kept() {
    let cache = SharedResultCache::default();
    let calls = [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#].map(read_call);
    let tickets = calls
        .each_ref()
        .map(|call| cache.ticket(call, ROOT.as_ref()).unwrap());
    for (call, ticket) in calls.iter().zip(&tickets) {
        cache.keep(ticket, &call_ref(), &success_outcome(call.input.text()));
    }
    assert_eq!(cache.0.lock().entries.by_key.len(), 3);
    drop(tickets);
    cache.ticket(&calls[0], ROOT.as_ref()).unwrap();
    assert_eq!(cache.0.lock().running.len(), 1);
}

/// Results are counted by what they hold, and may take all of the room.
#[test]
fn results_that_just_fit_are_all_kept() {
    let cache = SharedResultCache::default();
    let half = MAX_TOTAL_BYTES / 2 - ENTRY_BYTES;
    let calls = [r#"{"n":1}"#, r#"{"n":2}"#].map(read_call);
    let begin = Moment::now();
    for call in &calls {
        let ticket = cache.ticket(call, ROOT.as_ref()).unwrap();
        let outcome = success_outcome(&"x".repeat(half));
        cache.keep_at(begin, &ticket, &call_ref(), &outcome);
    }
    assert_eq!(cache.0.lock().entries.by_key.len(), 2);
    assert_eq!(cache.0.lock().entries.total_bytes, MAX_TOTAL_BYTES);
    // Results that are too old make room.
    let late = Moment {
        monotonic: begin.monotonic + Duration::from_hours(1),
        ..begin
    };
    assert!(cache.find_at(late, &calls[1], ROOT.as_ref()).is_none());
    assert_eq!(cache.0.lock().entries.total_bytes, MAX_TOTAL_BYTES / 2);
}

#[test]
fn what_only_clients_read_counts_and_what_is_in_files_is_not_kept() {
    let mut outcome = success_outcome(&"x".repeat(4096));
    assert_eq!(keepable_bytes(&outcome), Some(4096 + 1024));
    let json =
        |length: usize| RawValue::from_string(format!("{:?}", "y".repeat(length - 2))).unwrap();
    if let Outcome::Succeeded { for_clients, .. } = &mut outcome {
        *for_clients = Some(Box::new(ClientContent {
            structured: Some(json(2048)),
            blocks: Some(vec![json(1024), json(1024)]),
        }));
    }
    assert_eq!(keepable_bytes(&outcome), Some(2 * 4096 + 1024));
    if let Outcome::Succeeded { content, .. } = &mut outcome {
        *content = ResultContent::Text("x".repeat(1024));
    }
    assert_eq!(keepable_bytes(&outcome), Some(1024 + 4096 + 1024));
    outcome.captured_mut().unwrap().attachments = [Path::new("picture.png").to_owned()].into();
    assert_eq!(keepable_bytes(&outcome), None);
}
