//! Who may run now. Calls pass in the order in which they came; a safe one shares the gate with other safe ones, an
//! unsafe one has it alone.
//!
//! A pure state machine: it knows neither calls nor time, only numbers that its user gave to calls, and not how many may
//! run at once.

use std::collections::VecDeque;

/// A fair read/write gate.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    waiting: VecDeque<Waiting>,
    inside: usize,
    /// The one inside is unsafe.
    exclusive: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    call: usize,
    safe: bool,
}

impl Gate {
    /// Puts a call behind all that wait.
    pub(crate) fn push(&mut self, call: usize, safe: bool) {
        self.waiting.push_back(Waiting { call, safe });
    }

    /// The first waiting call, if it may enter. Nobody overtakes it.
    pub(crate) fn next(&self) -> Option<usize> {
        let Waiting { call, safe } = *self.waiting.front()?;
        let is_free = if safe {
            !self.exclusive
        } else {
            self.inside == 0
        };
        is_free.then_some(call)
    }

    /// Lets the first waiting call in, if it may.
    pub(crate) fn enter(&mut self) -> Option<usize> {
        self.next()?;
        let Waiting { call, safe } = self.waiting.pop_front()?;
        self.inside += 1;
        self.exclusive = !safe;
        Some(call)
    }

    /// One of those inside has left.
    pub(crate) fn leave(&mut self) {
        self.inside = self.inside.saturating_sub(1);
        self.exclusive = false;
    }

    /// Takes a waiting call out, wherever it waits. Says whether it did.
    pub(crate) fn remove(&mut self, call: usize) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.call != call);
        self.waiting.len() < before
    }

    /// Takes the waiting calls off the front as long as `which` says so.
    pub(crate) fn withdraw(&mut self, which: impl Fn(usize) -> bool) -> Vec<usize> {
        let until = self.waiting.iter().position(|waiting| !which(waiting.call));
        self.waiting
            .drain(..until.unwrap_or(self.waiting.len()))
            .map(|waiting| waiting.call)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule by itself, over a whole turn: a call may run when all that must be over before it are.
    struct Oracle<'t> {
        turn: &'t [bool],
        started: Vec<bool>,
        over: Vec<bool>,
        limit: usize,
    }

    impl Oracle<'_> {
        fn may_start(&self, call: usize) -> bool {
            let running = (0..self.turn.len()).filter(|i| self.started[*i] && !self.over[*i]);
            let ready = (0..call).all(|before| {
                let apart = !(self.turn[before] && self.turn[call]);
                self.started[before] && (self.over[before] || !apart)
            });
            ready && running.count() < self.limit
        }

        fn starting(&mut self) -> Vec<usize> {
            let mut starting = Vec::new();
            for call in 0..self.turn.len() {
                if !self.started[call] && self.may_start(call) {
                    self.started[call] = true;
                    starting.push(call);
                }
            }
            starting
        }
    }

    proptest! {
        /// FAULTS 72: an unsafe call never runs beside another, the limit holds, and nobody waits without need.
        #[test]
        fn lets_in_whom_the_rule_lets_in(
            turn in prop::collection::vec(any::<bool>(), 0..12),
            limit in 1_usize..5,
            finishes in prop::collection::vec(any::<prop::sample::Index>(), 12),
        ) {
            let mut gate = Gate::default();
            for (call, safe) in turn.iter().enumerate() {
                gate.push(call, *safe);
            }
            let idle = vec![false; turn.len()];
            let mut oracle = Oracle { turn: &turn, started: idle.clone(), over: idle, limit };
            let mut running = Vec::new();
            for finish in finishes {
                let room = limit - running.len();
                let entered: Vec<usize> = std::iter::from_fn(|| gate.enter()).take(room).collect();
                prop_assert_eq!(&entered, &oracle.starting());
                running.extend(entered);
                if running.is_empty() {
                    break;
                }
                let over = running.swap_remove(finish.index(running.len()));
                oracle.over[over] = true;
                gate.leave();
            }
            prop_assert!(running.is_empty() && oracle.over.iter().all(|over| *over));
        }
    }

    #[test]
    fn withdrawing_stops_at_the_first_that_stays() {
        let mut gate = Gate::default();
        gate.push(0, false);
        (1..4).for_each(|call| gate.push(call, true));
        assert_eq!(gate.enter(), Some(0));
        assert_eq!(gate.withdraw(|call| call < 3), [1, 2]);
        assert_eq!(gate.enter(), None);
        gate.leave();
        assert_eq!(gate.enter(), Some(3));
    }
}
