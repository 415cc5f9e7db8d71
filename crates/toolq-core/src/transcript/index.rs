//! The index of a recording that was read: its turns and, for each, where its calls stand.

use std::collections::HashSet;
use std::ops::Range;

use crate::types::{Dialect, Form};

/// What is kept of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnEntry {
    pub dialect: Dialect,
    pub form: Form,
    pub cut_off: bool,
}

/// What is kept of a call, in 16 bytes: recordings have millions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallEntry {
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

/// What is kept of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyEntry {
    /// Where its JSON begins in the input.
    pub offset: u64,
    /// Of its JSON, in bytes.
    pub len: u32,
    /// It says that the call was not run: the call is still open.
    pub skipped: bool,
}

/// Turns in their order, and calls by turn.
pub(crate) struct Index {
    turns: Vec<TurnEntry>,
    calls: Vec<CallEntry>,
    /// By call; those behind the last have none.
    replies: Vec<Option<ReplyEntry>>,
    /// Calls that were started, and nothing says how they ended.
    started: HashSet<usize>,
}

impl Index {
    /// `calls`, the results of each, and which were `started` and have none, in the order in which they were asked.
    pub fn new(
        turns: Vec<TurnEntry>,
        mut calls: Vec<CallEntry>,
        mut replies: Vec<Option<ReplyEntry>>,
        mut started: HashSet<usize>,
    ) -> Self {
        // Logs of several conversations at once have the calls of one turn apart.
        if !calls.is_sorted_by_key(|call| call.turn) {
            let mut order: Vec<usize> = (0..calls.len()).collect();
            order.sort_by_key(|&call| calls[call].turn);
            let sorted = |&call: &usize| replies.get(call).copied().flatten();
            replies = order.iter().map(sorted).collect();
            let places = order.iter().enumerate();
            let moved = places.filter(|(_, call)| started.contains(call));
            started = moved.map(|(place, _)| place).collect();
            calls = order.iter().map(|&call| calls[call]).collect();
        }
        Self {
            turns,
            calls,
            replies,
            started,
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
        self.reply(call).is_some_and(|reply| !reply.skipped)
    }

    pub fn is_started(&self, call: usize) -> bool {
        self.started.contains(&call)
    }

    pub fn reply(&self, call: usize) -> Option<ReplyEntry> {
        self.replies.get(call).copied().flatten()
    }

    /// The dialect of the first call, or of the first answer without one.
    pub fn dialect(&self) -> Option<Dialect> {
        let asking = self.calls.first().map_or(0, |call| call.turn as usize);
        self.turns.get(asking).map(|turn| turn.dialect)
    }
}
