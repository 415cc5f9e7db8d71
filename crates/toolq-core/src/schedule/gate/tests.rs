mod late_changes;

use proptest::prelude::*;

use super::*;
use crate::linear_time::assert_linear_time;
use crate::types::{CallLock, LockMode, LockedResource};

/// The rule by itself, over a whole turn, by looking at all pairs of calls.
struct GateOracle<'t> {
    turn: &'t [TestAccess],
    started: Vec<bool>,
    finished: Vec<bool>,
    limit: usize,
}

/// Whether a call is safe, and the paths and texts that it reads and writes.
#[derive(Debug, Clone)]
struct TestAccess {
    safe: bool,
    locks: Option<Vec<(bool, &'static str)>>,
}

const NAMES: [&str; 6] = ["/", "/a", "/a/b", "/a/b/c", "/ab", "text"];

/// `/a` meets `/a/b`, but not `/ab`.
fn meet(one: &str, other: &str) -> bool {
    let is_above = |above: &str, below: &str| {
        let above = above.trim_end_matches('/');
        below == above || below.starts_with(&format!("{above}/"))
    };
    one == other || is_above(one, other) || is_above(other, one)
}

impl GateOracle<'_> {
    fn must_wait(&self, call: usize, before: usize) -> bool {
        let (call, before) = (&self.turn[call], &self.turn[before]);
        match (&call.locks, &before.locks) {
            (Some(wanted), Some(held)) => wanted.iter().any(|(writes, name)| {
                let conflicts = |(other_writes, other): &(bool, &str)| {
                    (*writes || *other_writes) && meet(name, other)
                };
                held.iter().any(conflicts)
            }),
            (Some(_), None) => !before.safe,
            (None, _) => !before.safe || !call.safe,
        }
    }

    fn may_start(&self, call: usize) -> bool {
        let running = (0..self.turn.len()).filter(|i| self.started[*i] && !self.finished[*i]);
        let is_clear =
            (0..call).all(|before| self.finished[before] || !self.must_wait(call, before));
        is_clear && running.count() < self.limit
    }

    fn start_next(&mut self) -> Vec<usize> {
        let mut starting = Vec::new();
        for call in 0..self.turn.len() {
            if !self.started[call] && !self.finished[call] && self.may_start(call) {
                self.started[call] = true;
                starting.push(call);
            }
        }
        starting
    }
}

fn to_access(call: &TestAccess) -> CallAccess {
    let to_lock = |(writes, name): &(bool, &str)| CallLock {
        name: (*name).to_owned(),
        mode: if *writes {
            LockMode::Write
        } else {
            LockMode::Read
        },
        resource: if name.starts_with('/') {
            LockedResource::Path(name.into())
        } else {
            LockedResource::Text((*name).to_owned())
        },
    };
    CallAccess {
        safe: call.safe,
        locks: call
            .locks
            .as_ref()
            .map(|locks| locks.iter().map(to_lock).collect::<Vec<_>>().into()),
    }
}

fn access() -> impl Strategy<Value = TestAccess> {
    let lock = (any::<bool>(), prop::sample::select(&NAMES[..]));
    let locks = prop::option::weighted(0.7, prop::collection::vec(lock, 1..3));
    (any::<bool>(), locks).prop_map(|(safe, locks)| TestAccess { safe, locks })
}

proptest! {
    /// No call runs alongside one that it must wait for, the limit holds, and no call waits needlessly, not even for
    /// one that was removed.
    #[test]
    fn the_gate_admits_what_the_oracle_admits(
        turn in prop::collection::vec(access(), 0..14),
        limit in 1_usize..5,
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..5), 20),
    ) {
        let mut gate = Gate::default();
        for (call, access) in turn.iter().enumerate() {
            gate.push(call, to_access(access));
        }
        let idle = vec![false; turn.len()];
        let mut oracle = GateOracle { turn: &turn, started: idle.clone(), finished: idle, limit };
        let mut running: Vec<usize> = Vec::new();
        for (choice, action) in steps {
            let room = limit - running.len();
            let entered: Vec<usize> = std::iter::from_fn(|| gate.enter()).take(room).collect();
            prop_assert_eq!(&entered, &oracle.start_next());
            running.extend(entered);
            let waiting: Vec<usize> = (0..turn.len()).filter(|call| !oracle.started[*call] && !oracle.finished[*call]).collect();
            if action == 0 && !waiting.is_empty() {
                let removed = *choice.get(&waiting);
                prop_assert!(gate.remove(removed));
                oracle.finished[removed] = true;
            } else if !running.is_empty() {
                let finished = running.swap_remove(choice.index(running.len()));
                oracle.finished[finished] = true;
                gate.leave(finished);
            }
        }
        while !running.is_empty() {
            for call in running {
                oracle.finished[call] = true;
                gate.leave(call);
            }
            running = std::iter::from_fn(|| gate.enter()).take(limit).collect();
            prop_assert_eq!(&running, &oracle.start_next());
        }
        prop_assert!(oracle.finished.iter().all(|finished| *finished));
    }

    /// The calls that a call is said to wait for, and those that these wait for, are all that it must wait for.
    #[test]
    fn the_calls_before_a_call_imply_all_that_it_waits_for(turn in prop::collection::vec(access(), 0..14)) {
        let mut gate = Gate::default();
        for (call, access) in turn.iter().enumerate() {
            gate.push(call, to_access(access));
        }
        let oracle = GateOracle { turn: &turn, started: Vec::new(), finished: Vec::new(), limit: 1 };
        let mut said: Vec<BTreeSet<usize>> = Vec::new();
        let mut expected: Vec<BTreeSet<usize>> = Vec::new();
        for call in 0..turn.len() {
            let closure = |direct: &[usize], closures: &[BTreeSet<usize>]| {
                let implied = direct.iter().flat_map(|before| closures[*before].iter().copied());
                implied.chain(direct.iter().copied()).collect()
            };
            let direct = gate.calls_before(call);
            for before in &direct {
                prop_assert!(oracle.must_wait(call, *before));
                prop_assert!(to_access(&turn[call]).waits_for(&to_access(&turn[*before])).is_some());
            }
            let must: Vec<usize> = (0..call).filter(|before| oracle.must_wait(call, *before)).collect();
            said.push(closure(&direct, &said));
            expected.push(closure(&must, &expected));
        }
        prop_assert_eq!(said, expected);
    }

    /// Even if locks change at the last moment, calls that conflict never run together, and no call waits forever.
    #[test]
    fn locks_that_change_at_the_start_are_kept_apart(
        turn in prop::collection::vec(access(), 1..10),
        changes in prop::collection::vec(prop::option::of(prop::sample::select(&NAMES[..])), 10),
        finishes in prop::collection::vec(any::<prop::sample::Index>(), 10),
    ) {
        let mut gate = Gate::default();
        let mut now: Vec<CallAccess> = turn.iter().map(to_access).collect();
        for (call, access) in now.iter().enumerate() {
            gate.push(call, access.clone());
        }
        let mut changes = changes;
        let mut running: Vec<usize> = Vec::new();
        let mut finished = 0;
        let mut finishes = finishes.into_iter();
        while finished < turn.len() {
            while let Some(call) = gate.enter() {
                if let (Some(name), Some(_)) = (changes[call].take(), &now[call].locks) {
                    let changed = to_access(&TestAccess { safe: true, locks: Some(vec![(true, name)]) });
                    now[call].locks.clone_from(&changed.locks);
                    if !gate.change_locks(call, changed.locks.unwrap()) {
                        continue;
                    }
                }
                for other in &running {
                    let (earlier, later) = (call.min(*other), call.max(*other));
                    prop_assert!(now[later].waits_for(&now[earlier]).is_none());
                }
                running.push(call);
            }
            prop_assert!(!running.is_empty(), "calls wait although nothing runs");
            let index = finishes.next().map_or(0, |choice| choice.index(running.len()));
            gate.leave(running.swap_remove(index));
            finished += 1;
        }
    }
}

/// If one side has no locks, it is unknown what a write leaves unchanged.
#[test]
fn only_locks_tell_what_a_write_leaves_alone() {
    let access = |locks| to_access(&TestAccess { safe: false, locks });
    let read = access(Some(vec![(false, "/a/b")]));
    for (locks, may_change) in [
        (None, true),
        (Some(vec![(true, "/a")]), true),
        (Some(vec![(true, "/a/b/c")]), true),
        (Some(vec![(true, "/ab"), (false, "/a/b")]), false),
        (Some(vec![(true, "text")]), false),
    ] {
        assert_eq!(
            access(locks.clone()).may_change(&read),
            may_change,
            "{locks:?}"
        );
    }
    assert!(access(Some(vec![(true, "/ab")])).may_change(&access(None)));
}

#[test]
fn withdrawing_takes_calls_wherever_they_wait() {
    let mut gate = Gate::default();
    gate.push(0, CallAccess::ALONE);
    (1..4).for_each(|call| {
        gate.push(
            call,
            CallAccess {
                safe: true,
                locks: None,
            },
        );
    });
    assert_eq!(gate.enter(), Some(0));
    assert_eq!(gate.withdraw(|call| call != 2), [1, 3]);
    assert_eq!(gate.enter(), None);
    gate.leave(0);
    assert_eq!(gate.enter(), Some(2));
}

/// A million calls that can all run need no graph.
#[test]
fn calls_are_put_into_the_graph_only_when_they_may_enter() {
    let mut gate = Gate::default();
    for call in 0..100 {
        gate.push(
            call,
            CallAccess {
                safe: call != 50,
                locks: None,
            },
        );
    }
    let entered: Vec<usize> = std::iter::from_fn(|| gate.enter()).collect();
    assert_eq!(entered, (0..50).collect::<Vec<_>>());
    assert_eq!((gate.calls.len(), gate.next_waiting()), (51, Some(50)));
    assert!(gate.remove(51) && !gate.remove(51));
    assert_eq!(gate.withdraw(|call| call % 25 == 0), [50, 75]);
    assert_eq!(gate.peek(), Some(52));
    for call in entered {
        gate.leave(call);
    }
    let rest: Vec<usize> = std::iter::from_fn(|| gate.enter()).collect();
    assert_eq!(rest.len(), 47);
    for call in rest {
        gate.leave(call);
    }
    assert!(gate.is_empty() && gate.graph.is_empty());
}

/// Only a waiting call can be removed; the calls after it move up.
#[test]
fn a_call_that_was_removed_blocks_no_other() {
    let mut gate = Gate::default();
    (0..3).for_each(|call| {
        gate.push(
            call,
            CallAccess {
                safe: call == 2,
                locks: None,
            },
        );
    });
    assert_eq!(gate.enter(), Some(0));
    assert_eq!(
        [0, 1, 1].map(|call| gate.remove(call)),
        [false, true, false]
    );
    gate.leave(0);
    assert_eq!(gate.enter(), Some(2));
}

/// Whatever the locks are; and a gate that is empty holds nothing.
#[test]
fn calls_with_locks_are_ordered_in_linear_time() {
    let write = |name: String| TestLock(name, LockMode::Write);
    let read = |name: String| TestLock(name, LockMode::Read);
    let shapes: [(&str, LockOf); 6] = [
        (
            "one file",
            Box::new(move |_, _| Some(write("/r/f".to_owned()))),
        ),
        (
            "many files",
            Box::new(move |call, _| Some(write(format!("/r/{call}")))),
        ),
        (
            "folder and files",
            Box::new(move |call, _| {
                Some(if call % 2 == 0 {
                    read("/r".to_owned())
                } else {
                    write(format!("/r/{call}"))
                })
            }),
        ),
        (
            "readers, then writers",
            Box::new(move |call, count| {
                Some(if call < count / 2 {
                    read("/r".to_owned())
                } else {
                    write(format!("/r/{call}"))
                })
            }),
        ),
        (
            "some without locks",
            Box::new(move |call, _| (call % 3 > 0).then(|| write(format!("/r/{call}")))),
        ),
        (
            "deep",
            Box::new(move |call, _| Some(write(format!("{}{call}", "/d".repeat(50))))),
        ),
    ];
    for (shape, lock_of) in shapes {
        assert_linear_time(shape, 500, |count| {
            // Each writer waits for all readers, so what one of them waits for is enough.
            let is_complete = shape == "readers, then writers";
            let listed = if is_complete { count / 2 + 1 } else { count };
            order_calls(count, listed, |call| lock_of(call, count));
        });
    }
}

/// Lists what the first calls wait for, then has all enter and leave a gate until they have finished.
fn order_calls(count: usize, listed: usize, lock_of: impl Fn(usize) -> Option<TestLock>) {
    let mut gate = Gate::default();
    for call in 0..count {
        let locks: Option<CallLocks> = lock_of(call).map(|TestLock(name, mode)| {
            let resource = LockedResource::Path(name.clone().into());
            vec![CallLock {
                name,
                mode,
                resource,
            }]
            .into()
        });
        gate.push(
            call,
            CallAccess {
                safe: call % 2 == 0,
                locks,
            },
        );
    }
    for call in 0..listed {
        gate.calls_before(call);
    }
    let mut running = VecDeque::new();
    for _ in 0..count {
        running.extend(std::iter::from_fn(|| gate.enter()));
        gate.leave(running.pop_front().unwrap());
    }
    assert!(gate.calls.is_empty() && gate.waiting.is_empty() && gate.graph.is_empty());
}

struct TestLock(String, LockMode);

/// Returns the lock of a call with this number, of so many calls.
type LockOf = Box<dyn Fn(usize, usize) -> Option<TestLock>>;
