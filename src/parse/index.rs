//! The index of a recording that was read: its turns and, for each, where its calls stand.

use std::ops::Range;

use super::pairing::Mark;
use crate::model::{Dialect, Form};

/// What is kept of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnEntry {
    pub dialect: Dialect,
    pub form: Form,
    pub cut_off: bool,
}

/// What is kept of a call, in 16 bytes: recordings have millions.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallEntry {
    /// Where its JSON begins in the input.
    pub offset: u64,
    /// Of its JSON, in bytes.
    pub len: u32,
    pub turn: u32,
}

impl CallEntry {
    /// Where its JSON ends in the input.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// Turns in their order, and calls by turn.
pub(super) struct Index {
    turns: Vec<TurnEntry>,
    calls: Vec<CallEntry>,
    /// As long as `calls`, or empty where all are open.
    marks: Vec<Mark>,
}

impl Index {
    /// `calls` and what is known of each (or nothing, where all are open), in the order in which they were asked.
    pub fn new(turns: Vec<TurnEntry>, mut calls: Vec<CallEntry>, mut marks: Vec<Mark>) -> Self {
        // Logs of several conversations at once have the calls of one turn apart.
        if !calls.is_sorted_by_key(|call| call.turn) {
            let mut order: Vec<usize> = (0..calls.len()).collect();
            order.sort_by_key(|&call| calls[call].turn);
            let sorted = order.iter().filter_map(|&call| marks.get(call));
            marks = sorted.copied().collect();
            calls = order.iter().map(|&call| calls[call]).collect();
        }
        Self {
            turns,
            calls,
            marks,
        }
    }

    /// How many turns there are.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    pub fn turn(&self, number: usize) -> TurnEntry {
        self.turns[number]
    }

    pub fn call(&self, call: usize) -> CallEntry {
        self.calls[call]
    }

    /// Which of the calls belong to a turn.
    pub fn calls_of(&self, number: usize) -> Range<usize> {
        let before = |number| {
            self.calls
                .partition_point(|call| (call.turn as usize) < number)
        };
        before(number)..before(number + 1)
    }

    pub fn is_answered(&self, call: usize) -> bool {
        self.marks.get(call) == Some(&Mark::Answered)
    }

    pub fn is_started(&self, call: usize) -> bool {
        self.marks.get(call) == Some(&Mark::Started)
    }

    /// The dialect of the first call, or of the first answer without one.
    pub fn dialect(&self) -> Option<Dialect> {
        let asking = self.calls.first().map_or(0, |call| call.turn as usize);
        self.turns.get(asking).map(|turn| turn.dialect)
    }
}
