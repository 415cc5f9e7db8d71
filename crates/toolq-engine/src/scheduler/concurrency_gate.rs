//! A fair read/write gate. Calls are admitted in arrival order; concurrency-safe calls share the gate, and all others
//! hold it exclusively.
//!
//! A pure state machine: it knows neither time nor the concurrency limit, and calls only by the numbers that its user
//! gave them.

use std::collections::VecDeque;

/// A fair read/write gate.
#[derive(Debug, Default)]
pub struct Gate {
    waiting: VecDeque<WaitingCall>,
    admitted: usize,
    /// The admitted call isn't concurrency-safe.
    exclusive: bool,
}

#[derive(Debug, Clone, Copy)]
struct WaitingCall {
    call: usize,
    safe: bool,
}

impl Gate {
    /// Adds a call to the end of the queue.
    pub fn push(&mut self, call: usize, safe: bool) {
        self.waiting.push_back(WaitingCall { call, safe });
    }

    /// Returns the first waiting call, if it may enter. No other call overtakes it.
    pub fn peek(&self) -> Option<usize> {
        let WaitingCall { call, safe } = *self.waiting.front()?;
        let may_enter = if safe {
            !self.exclusive
        } else {
            self.admitted == 0
        };
        may_enter.then_some(call)
    }

    /// Returns the first waiting call, whether it may enter or not.
    pub fn next_waiting(&self) -> Option<usize> {
        self.waiting.front().map(|waiting| waiting.call)
    }

    /// Returns whether an admitted call hasn't left yet.
    pub fn has_admitted(&self) -> bool {
        self.admitted > 0
    }

    /// Admits the first waiting call, if it may enter.
    pub fn enter(&mut self) -> Option<usize> {
        self.peek()?;
        let WaitingCall { call, safe } = self.waiting.pop_front()?;
        self.admitted += 1;
        self.exclusive = !safe;
        Some(call)
    }

    /// Releases the gate for one of the admitted calls.
    pub fn leave(&mut self) {
        self.admitted = self.admitted.saturating_sub(1);
        self.exclusive = false;
    }

    /// Removes a waiting call, wherever it is in the queue. Returns whether it was waiting.
    pub fn remove(&mut self, call: usize) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.call != call);
        self.waiting.len() < before
    }

    /// Removes waiting calls from the front of the queue while `predicate` holds, and returns them.
    pub fn withdraw_while(&mut self, predicate: impl Fn(usize) -> bool) -> Vec<usize> {
        let until = self
            .waiting
            .iter()
            .position(|waiting| !predicate(waiting.call));
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

    /// The rule by itself, over a whole turn: a call may start once all calls that it must wait for have finished.
    struct GateOracle<'t> {
        safety: &'t [bool],
        started: Vec<bool>,
        finished: Vec<bool>,
        limit: usize,
    }

    impl GateOracle<'_> {
        fn may_start(&self, call: usize) -> bool {
            let running = (0..self.safety.len()).filter(|i| self.started[*i] && !self.finished[*i]);
            let ready = (0..call).all(|before| {
                let may_overlap = self.safety[before] && self.safety[call];
                self.started[before] && (self.finished[before] || may_overlap)
            });
            ready && running.count() < self.limit
        }

        fn start_next(&mut self) -> Vec<usize> {
            let mut starting = Vec::new();
            for call in 0..self.safety.len() {
                if !self.started[call] && self.may_start(call) {
                    self.started[call] = true;
                    starting.push(call);
                }
            }
            starting
        }
    }

    proptest! {
        /// An unsafe call never runs alongside another, the limit holds, and no call waits needlessly.
        #[test]
        fn the_gate_admits_what_the_oracle_admits(
            turn in prop::collection::vec(any::<bool>(), 0..12),
            limit in 1_usize..5,
            finishes in prop::collection::vec(any::<prop::sample::Index>(), 12),
        ) {
            let mut gate = Gate::default();
            for (call, safe) in turn.iter().enumerate() {
                gate.push(call, *safe);
            }
            let idle = vec![false; turn.len()];
            let mut oracle = GateOracle { safety: &turn, started: idle.clone(), finished: idle, limit };
            let mut running = Vec::new();
            for finish in finishes {
                let room = limit - running.len();
                let entered: Vec<usize> = std::iter::from_fn(|| gate.enter()).take(room).collect();
                prop_assert_eq!(&entered, &oracle.start_next());
                running.extend(entered);
                if running.is_empty() {
                    break;
                }
                let finished = running.swap_remove(finish.index(running.len()));
                oracle.finished[finished] = true;
                gate.leave();
            }
            prop_assert!(running.is_empty() && oracle.finished.iter().all(|finished| *finished));
        }
    }

    #[test]
    fn withdrawing_stops_at_the_first_that_stays() {
        let mut gate = Gate::default();
        gate.push(0, false);
        (1..4).for_each(|call| gate.push(call, true));
        assert_eq!(gate.enter(), Some(0));
        assert_eq!(gate.withdraw_while(|call| call < 3), [1, 2]);
        assert_eq!(gate.enter(), None);
        gate.leave();
        assert_eq!(gate.enter(), Some(3));
    }

    /// Only a waiting call can be removed; the calls behind it move up.
    #[test]
    fn a_call_that_was_removed_blocks_no_other() {
        let mut gate = Gate::default();
        (0..3).for_each(|call| gate.push(call, call == 2));
        assert_eq!(gate.enter(), Some(0));
        assert_eq!(
            [0, 1, 1].map(|call| gate.remove(call)),
            [false, true, false]
        );
        gate.leave();
        assert_eq!(gate.enter(), Some(2));
    }
}
