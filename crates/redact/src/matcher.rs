//! One way of reading a text: a state of the automaton, and where in the text that stands which it has read.

use std::collections::VecDeque;

use aho_corasick::automaton::StateID;

use crate::decoder::Said;
use crate::patterns::Needles;
use crate::spellings::Ends;

/// A secret, in bytes of the text. Others that overlap it are a part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) ends: Ends,
}

/// One way of reading a text.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) state: StateID,
    /// How many bytes it has read.
    len: usize,
    /// From which of them on how many more bytes the text has.
    shifts: VecDeque<(usize, usize)>,
}

impl Track {
    pub(crate) fn new(state: StateID) -> Self {
        Self {
            state,
            len: 0,
            shifts: VecDeque::new(),
        }
    }

    /// The next byte is at `start` of the text.
    fn land(&mut self, start: usize) {
        let shift = start - self.len;
        if self.shifts.back().map_or(0, |(_, shift)| *shift) != shift {
            self.shifts.push_back((self.len, shift));
        }
    }

    pub(crate) fn pass(&mut self, start: usize, count: usize, state: StateID) {
        if count > 0 {
            self.land(start);
        }
        self.len += count;
        self.state = state;
    }

    pub(crate) fn step(&mut self, needles: &Needles, byte: Said) {
        self.land(byte.start);
        self.len += 1;
        self.state = needles.next(self.state, byte.byte);
        let needed = self.len.saturating_sub(needles.longest);
        while self.shifts.get(1).is_some_and(|(at, _)| *at <= needed) {
            self.shifts.pop_front();
        }
    }

    /// Where the text has byte `at` of this way.
    fn place(&self, at: usize) -> usize {
        let behind = self.shifts.partition_point(|(from, _)| *from <= at);
        let shift = behind
            .checked_sub(1)
            .map_or(0, |index| self.shifts[index].1);
        at + shift
    }

    /// Where a needle may have begun.
    pub(crate) fn begun(&self, needles: &Needles) -> Option<usize> {
        let begun = needles.begun(self.state);
        (begun > 0).then(|| self.place(self.len - begun))
    }

    /// Notes the needles that end here, at `end` of the text; of base64 only where `is_joined`.
    pub(crate) fn matches(
        &self,
        needles: &Needles,
        end: usize,
        is_joined: bool,
        found: &mut VecDeque<Found>,
    ) {
        for (len, ends) in needles.matches(self.state) {
            if ends.is_base64 || !is_joined {
                let start = self.place(self.len - len);
                note(Found { start, end, ends }, found);
            }
        }
    }
}

/// Puts a secret behind those that were found before it, or into one with them.
fn note(mut new: Found, found: &mut VecDeque<Found>) {
    while let Some(last) = found.pop_back_if(|last| last.end > new.start) {
        let (before, behind) = (new.ends.before, new.ends.behind);
        new.ends.before =
            before && new.start <= last.start || last.ends.before && last.start <= new.start;
        new.ends.behind = behind && new.end >= last.end || last.ends.behind && last.end >= new.end;
        new.start = new.start.min(last.start);
        new.end = new.end.max(last.end);
    }
    found.push_back(new);
}
