//! The scheduling rules: unsafe calls run alone, calls start in their order, permits limit how many run, and nothing
//! waits forever.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use toolq_engine::testing::{ConcurrencyLimit, Gate, Permit};

use crate::choices::Choices;

/// Two turns that share one limit, as a turn and the turns of agents in it do.
const TURNS: usize = 2;

/// Follows a schedule of two turns.
pub fn gate(data: &[u8]) {
    let mut choices = Choices::new(data);
    let jobs = 1 + choices.below(4);
    let limit = ConcurrencyLimit::new(NonZeroUsize::new(jobs).unwrap());
    let mut turns: [Turn; TURNS] = Default::default();
    while !choices.is_empty() {
        let step = choices.byte();
        let running: usize = turns.iter().map(|turn| turn.running.len()).sum();
        let turn = &mut turns[usize::from(step >> 7)];
        match step % 8 {
            0 | 1 => turn.push(true),
            2 => turn.push(false),
            3 | 4 => turn.start_next(&limit, running < jobs),
            5 => turn.finish(choices.byte()),
            6 => turn.remove(choices.byte()),
            _ => turn.withdraw(choices.byte()),
        }
    }
    finish_all(&mut turns, &limit, jobs);
}

/// Nothing starves: once running calls finish one by one, every waiting call runs.
fn finish_all(turns: &mut [Turn; TURNS], limit: &ConcurrencyLimit, jobs: usize) {
    loop {
        let waiting_before: usize = turns.iter().map(|turn| turn.waiting.len()).sum();
        for index in 0..TURNS {
            for _ in 0..jobs {
                let running: usize = turns.iter().map(|turn| turn.running.len()).sum();
                turns[index].start_next(limit, running < jobs);
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
}

/// A turn, and what its gate should know.
#[derive(Default)]
struct Turn {
    gate: Gate,
    next_number: usize,
    waiting: VecDeque<TestCall>,
    running: Vec<(TestCall, Permit)>,
}

impl Turn {
    fn push(&mut self, is_safe: bool) {
        let number = self.next_number;
        self.next_number += 1;
        self.gate.push(number, is_safe);
        self.waiting.push_back(TestCall { number, is_safe });
    }

    /// The rule, stated by what runs: the first waiting call may start if it is safe and only safe calls run, or if
    /// nothing runs.
    fn may_start(&self) -> Option<TestCall> {
        let first = *self.waiting.front()?;
        let only_safe_run = self.running.iter().all(|(call, _)| call.is_safe);
        (self.running.is_empty() || first.is_safe && only_safe_run).then_some(first)
    }

    /// Starts the next call in the same steps as the engine.
    fn start_next(&mut self, limit: &ConcurrencyLimit, has_room: bool) {
        let expected = self.may_start();
        assert_eq!(self.gate.peek(), expected.map(|call| call.number));
        let Some(call) = expected else {
            assert_eq!(self.gate.enter(), None);
            return;
        };
        let permit = limit.try_acquire();
        assert_eq!(permit.is_some(), has_room, "permits don't match what runs");
        if let Some(permit) = permit {
            assert_eq!(self.gate.enter(), Some(call.number));
            self.waiting.pop_front();
            self.running.push((call, permit));
        }
    }

    fn finish(&mut self, choice: u8) {
        if !self.running.is_empty() {
            let index = usize::from(choice) % self.running.len();
            self.running.swap_remove(index);
            self.gate.leave();
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
        let withdrawn = self.gate.withdraw_while(|number| number < bound);
        let mut expected = Vec::new();
        while let Some(call) = self.waiting.pop_front_if(|call| call.number < bound) {
            expected.push(call.number);
        }
        assert_eq!(withdrawn, expected);
    }
}
