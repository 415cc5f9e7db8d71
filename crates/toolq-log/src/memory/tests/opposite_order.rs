//! Two runs whose inputs share two calls, in opposite order: neither waits for ever, and each call is made once.

use std::collections::HashSet;

use crate::memory::decision::{
    Asker, Attempt, AttemptEnd, Decision, LogAccess, ResultKind, decide,
};

const RUNS: usize = 2;
const CALLS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Call {
    Unclaimed,
    /// This run is at it, or is going to be.
    Claimed(usize),
    Done(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    calls: [Call; CALLS],
    /// How many of its calls each run has answered.
    answered: [usize; RUNS],
    /// Whether the next call of each run is being made by this run.
    is_running: [bool; RUNS],
    effects: [u8; CALLS],
}

/// When a run claims a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaimedAt {
    /// Once all before it have ended, and nothing else keeps it from starting.
    Start,
    /// As soon as it has come.
    Arrival,
}

/// The call that is the `number`-th of a run.
fn call_of(run: usize, number: usize) -> usize {
    if run == 0 { number } else { CALLS - 1 - number }
}

fn decide_for(call: Call, run: usize) -> Decision {
    let (owner, end) = match call {
        Call::Unclaimed => return decide(None, Asker::default()),
        Call::Claimed(owner) => (owner, AttemptEnd::Unknown),
        Call::Done(owner) => (owner, AttemptEnd::Result(ResultKind::Done)),
    };
    let attempt = Attempt {
        number: 1,
        settled: None,
        log: if owner == run {
            LogAccess::Own
        } else {
            LogAccess::Held
        },
        end,
        is_same_call: true,
        is_expired: false,
    };
    decide(Some(&attempt), Asker::default())
}

fn successors(world: World, claimed_at: ClaimedAt) -> Vec<World> {
    let mut next = Vec::new();
    for run in 0..RUNS {
        let number = world.answered[run];
        if number == CALLS {
            continue;
        }
        if claimed_at == ClaimedAt::Arrival {
            for later in (number..CALLS).map(|number| call_of(run, number)) {
                if world.calls[later] == Call::Unclaimed {
                    let mut claimed = world;
                    claimed.calls[later] = Call::Claimed(run);
                    next.push(claimed);
                }
            }
        }
        next.extend(step(world, run, call_of(run, number)));
    }
    next
}

/// What a run does next about its next call. Nothing if it waits.
fn step(mut world: World, run: usize, call: usize) -> Option<World> {
    if world.is_running[run] {
        world.effects[call] += 1;
        world.calls[call] = Call::Done(run);
        world.is_running[run] = false;
        world.answered[run] += 1;
        return Some(world);
    }
    match decide_for(world.calls[call], run) {
        Decision::Run(_) => {
            world.calls[call] = Call::Claimed(run);
            world.is_running[run] = true;
        }
        Decision::Answer => world.answered[run] += 1,
        // It has claimed the call when it came.
        Decision::IsRunning => world.is_running[run] = true,
        _ => return None,
    }
    Some(world)
}

/// Returns whether every way leads to the end of both runs, each call made once.
fn all_end(claimed_at: ClaimedAt) -> bool {
    let start = World {
        calls: [Call::Unclaimed; CALLS],
        answered: [0; RUNS],
        is_running: [false; RUNS],
        effects: [0; CALLS],
    };
    let mut seen = HashSet::from([start]);
    let mut open = vec![start];
    while let Some(world) = open.pop() {
        assert!(world.effects.iter().all(|effects| *effects <= 1));
        let next = successors(world, claimed_at);
        let is_over = world.answered == [CALLS; RUNS];
        if next.is_empty() && !is_over {
            return false;
        }
        open.extend(next.into_iter().filter(|world| seen.insert(*world)));
    }
    true
}

#[test]
fn neither_of_two_runs_waits_for_ever() {
    assert!(all_end(ClaimedAt::Start));
}

#[test]
fn a_claim_on_arrival_would_make_them_wait_for_each_other() {
    assert!(!all_end(ClaimedAt::Arrival));
}
