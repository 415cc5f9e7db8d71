//! Where secrets stand in bytes that arrive in pieces. Time is linear in the bytes, and memory in the longest secret.

use std::collections::VecDeque;

use aho_corasick::automaton::StateID;

use super::forms::Ends;
use super::needles::Needles;
use super::view::{Said, View};

/// A secret, in bytes of the text. Others that overlap it are a part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) ends: Ends,
}

/// Looks for needles in three ways at once: in the bytes as they are, in what they say, and in that without line breaks,
/// for base64. As long as all three are in one state and no escape begins, one step is enough for all.
#[derive(Debug)]
pub(super) struct Scan {
    /// How much was read.
    at: usize,
    view: View,
    bytes: Track,
    said: Track,
    joined: Track,
    /// What was found and not taken, from left to right, without an overlap.
    found: VecDeque<Found>,
}

impl Scan {
    pub(super) fn new(needles: &Needles) -> Self {
        Self {
            at: 0,
            view: View::new(),
            bytes: Track::new(needles.start),
            said: Track::new(needles.start),
            joined: Track::new(needles.start),
            found: VecDeque::new(),
        }
    }

    /// Reads the next bytes.
    pub(super) fn push(&mut self, needles: &Needles, mut bytes: &[u8]) {
        while let Some(&byte) = bytes.first() {
            let plain = match self.is_one() {
                true => self.pass(needles, bytes),
                false => 0,
            };
            if plain == 0 {
                self.read(needles, byte);
            }
            bytes = &bytes[plain.max(1)..];
        }
    }

    /// Reads the end: nothing follows.
    pub(super) fn finish(&mut self, needles: &Needles) {
        let Self {
            view,
            said,
            joined,
            found,
            ..
        } = self;
        view.finish(&mut |byte| look(needles, byte, said, joined, found));
    }

    /// No secret that is not found yet begins before this, but for a digit of base64.
    pub(super) fn certain(&self, needles: &Needles) -> usize {
        let next = self.view.pending().unwrap_or(self.at);
        let tracks = [&self.bytes, &self.said, &self.joined];
        let begun = tracks.map(|track| track.begun(needles).unwrap_or(next));
        begun.into_iter().fold(next, usize::min)
    }

    /// What was found and begins before `until`.
    pub(super) fn take(&mut self, until: usize) -> Option<Found> {
        let is_before = |found: &Found| found.start < until;
        is_before(self.found.front()?).then(|| self.found.pop_front())?
    }

    /// Whether nothing was found that was not taken.
    pub(super) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether the three ways differ in nothing.
    fn is_one(&self) -> bool {
        let state = self.bytes.state;
        self.said.state == state && self.joined.state == state && self.view.pending().is_none()
    }

    /// Reads bytes that say what they are, in one step for all ways; stops at a secret. Returns how many it read.
    fn pass(&mut self, needles: &Needles, bytes: &[u8]) -> usize {
        let mut state = self.bytes.state;
        let mut read = 0;
        for &byte in bytes {
            let is_break = matches!(byte, b'\n' | b'\r');
            if matches!(byte, b'\\' | b'%' | b'&') || is_break && state != needles.start {
                break;
            }
            let next = needles.next(state, byte);
            if is_break && next != needles.start {
                break;
            }
            state = next;
            read += 1;
            if needles.is_match(state) {
                break;
            }
        }
        for track in [&mut self.bytes, &mut self.said, &mut self.joined] {
            track.pass(self.at, read, state);
        }
        self.at += read;
        if read > 0 && needles.is_match(state) {
            for track in [&self.bytes, &self.said, &self.joined] {
                track.matches(needles, self.at, false, &mut self.found);
            }
        }
        read
    }

    /// Reads a byte in each way.
    fn read(&mut self, needles: &Needles, byte: u8) {
        let (start, end) = (self.at, self.at + 1);
        self.at = end;
        let byte = Said { byte, start, end };
        self.bytes.step(needles, byte);
        self.bytes.matches(needles, end, false, &mut self.found);
        let Self {
            view,
            said,
            joined,
            found,
            ..
        } = self;
        view.push(byte, &mut |byte| look(needles, byte, said, joined, found));
    }
}

/// Takes a byte that is said; line breaks are left out of what is joined.
fn look(
    needles: &Needles,
    byte: Said,
    said: &mut Track,
    joined: &mut Track,
    found: &mut VecDeque<Found>,
) {
    said.step(needles, byte);
    said.matches(needles, byte.end, false, found);
    if !matches!(byte.byte, b'\n' | b'\r') {
        joined.step(needles, byte);
        joined.matches(needles, byte.end, true, found);
    }
}

/// One way of reading a text.
#[derive(Debug)]
struct Track {
    state: StateID,
    /// How many bytes it has read.
    len: usize,
    /// From which of them on how many more bytes the text has.
    shifts: VecDeque<(usize, usize)>,
}

impl Track {
    fn new(state: StateID) -> Self {
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

    fn pass(&mut self, start: usize, count: usize, state: StateID) {
        if count > 0 {
            self.land(start);
        }
        self.len += count;
        self.state = state;
    }

    fn step(&mut self, needles: &Needles, byte: Said) {
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
    fn begun(&self, needles: &Needles) -> Option<usize> {
        let begun = needles.begun(self.state);
        (begun > 0).then(|| self.place(self.len - begun))
    }

    /// Notes the needles that end here, at `end` of the text; of base64 only where `is_joined`.
    fn matches(&self, needles: &Needles, end: usize, is_joined: bool, found: &mut VecDeque<Found>) {
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
