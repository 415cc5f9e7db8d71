//! The scheduling rules: unsafe calls run alone, calls with locks wait for those before them that conflict, and nothing waits
//! forever.

use std::collections::VecDeque;

use toolq_core::schedule::{CallAccess, Gate};
use toolq_core::types::{CallLock, LockMode, LockedResource};

use crate::choices::Choices;

/// Two turns that share one limit, as a turn and the turns of agents in it do.
const TURNS: usize = 2;

/// Follows a schedule of two turns.
pub fn gate(data: &[u8]) {
    let mut choices = Choices::new(data);
    let jobs = 1 + choices.below(4);
    let mut turns: [Turn; TURNS] = Default::default();
    while !choices.is_empty() {
        let step = choices.byte();
        let running: usize = turns.iter().map(|turn| turn.running.len()).sum();
        let turn = &mut turns[usize::from(step >> 7)];
        match step % 8 {
            0 => turn.push(true, None),
            1 => {
                let is_safe = step & 8 > 0;
                let locks = [choices.byte(), choices.byte()].map(TestLock::new);
                turn.push(is_safe, Some(locks));
            }
            2 => turn.push(false, None),
            3 | 4 => turn.start_next(running < jobs),
            5 => turn.finish(choices.byte()),
            6 => turn.remove(choices.byte()),
            _ => turn.withdraw(choices.byte()),
        }
    }
    finish_all(&mut turns, jobs);
}

/// Nothing starves: once running calls finish one by one, every waiting call runs.
fn finish_all(turns: &mut [Turn; TURNS], jobs: usize) {
    loop {
        let waiting_before: usize = turns.iter().map(|turn| turn.waiting.len()).sum();
        for index in 0..TURNS {
            for _ in 0..jobs {
                let running: usize = turns.iter().map(|turn| turn.running.len()).sum();
                turns[index].start_next(running < jobs);
            }
        }
        let running: usize = turns.iter().map(|turn| turn.running.len()).sum();
        if running == 0 {
            assert_eq!(waiting_before, 0, "calls wait although nothing runs");
            return;
        }
        for turn in turns.iter_mut() {
            turn.finish(0);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct TestCall {
    number: usize,
    is_safe: bool,
    locks: Option<[TestLock; 2]>,
}

/// What a call reads or writes: a path of directories `0` and `1`, of which one may be above another, or a text.
#[derive(Clone, Copy, PartialEq, Debug)]
struct TestLock {
    writes: bool,
    is_text: bool,
    depth: u8,
    bits: u8,
}

impl TestLock {
    fn new(choice: u8) -> Self {
        Self {
            writes: choice & 1 > 0,
            is_text: choice & 2 > 0,
            depth: (choice >> 2) % 4,
            bits: choice >> 4,
        }
    }

    fn components(self) -> Vec<u8> {
        (0..self.depth)
            .map(|level| self.bits >> level & 1)
            .collect()
    }

    fn conflicts_with(self, other: Self) -> bool {
        let (one, two) = (self.components(), other.components());
        let meets = if self.is_text {
            one == two
        } else {
            one.starts_with(&two) || two.starts_with(&one)
        };
        self.is_text == other.is_text && meets && (self.writes || other.writes)
    }

    fn to_lock(self) -> CallLock {
        let names: Vec<String> = self.components().iter().map(u8::to_string).collect();
        let name = format!("/{}", names.join("/"));
        CallLock {
            mode: if self.writes {
                LockMode::Write
            } else {
                LockMode::Read
            },
            resource: if self.is_text {
                LockedResource::Text(name.clone())
            } else {
                LockedResource::Path(name.clone().into())
            },
            name,
        }
    }
}

impl TestCall {
    /// The rule, for a call and one that came before it and hasn't finished.
    fn waits_for(&self, earlier: &Self) -> bool {
        match (&self.locks, &earlier.locks) {
            (Some(wanted), Some(held)) => wanted
                .iter()
                .any(|lock| held.iter().any(|other| lock.conflicts_with(*other))),
            (Some(_), None) => !earlier.is_safe,
            (None, _) => !(self.is_safe && earlier.is_safe),
        }
    }
}

/// A turn, and what its gate should know.
#[derive(Default)]
struct Turn {
    gate: Gate,
    next_number: usize,
    waiting: VecDeque<TestCall>,
    running: Vec<TestCall>,
}

impl Turn {
    fn push(&mut self, is_safe: bool, locks: Option<[TestLock; 2]>) {
        let number = self.next_number;
        self.next_number += 1;
        let access = CallAccess {
            safe: is_safe,
            locks: locks.map(|locks| Vec::from(locks.map(TestLock::to_lock)).into()),
        };
        self.gate.push(number, access);
        let call = TestCall {
            number,
            is_safe,
            locks,
        };
        self.waiting.push_back(call);
    }

    /// The first call that waits for no other, neither a running nor a waiting one.
    fn may_start(&self) -> Option<TestCall> {
        let unfinished = || self.running.iter().chain(&self.waiting);
        let is_clear = |call: &&TestCall| {
            let mut earlier = unfinished().filter(|other| other.number < call.number);
            !earlier.any(|earlier| call.waits_for(earlier))
        };
        self.waiting.iter().find(is_clear).copied()
    }

    /// Starts the next call in the same steps as the engine.
    fn start_next(&mut self, has_room: bool) {
        let expected = self.may_start();
        assert_eq!(self.gate.peek(), expected.map(|call| call.number));
        let Some(call) = expected else {
            assert_eq!(self.gate.enter(), None);
            return;
        };
        if has_room {
            assert_eq!(self.gate.enter(), Some(call.number));
            self.waiting.retain(|waiting| *waiting != call);
            self.running.push(call);
        }
    }

    fn finish(&mut self, choice: u8) {
        if !self.running.is_empty() {
            let index = usize::from(choice) % self.running.len();
            let call = self.running.swap_remove(index);
            self.gate.leave(call.number);
        }
    }

    fn remove(&mut self, choice: u8) {
        let number = usize::from(choice) % (self.next_number + 1);
        let waited = self.waiting.iter().any(|call| call.number == number);
        self.waiting.retain(|call| call.number != number);
        assert_eq!(self.gate.remove(number), waited);
    }

    fn withdraw(&mut self, choice: u8) {
        let bound = usize::from(choice);
        let withdrawn = self.gate.withdraw(|number| number < bound);
        let waiting = self.waiting.iter().map(|call| call.number);
        let expected: Vec<usize> = waiting.filter(|number| *number < bound).collect();
        self.waiting.retain(|call| call.number >= bound);
        assert_eq!(withdrawn, expected);
    }
}
