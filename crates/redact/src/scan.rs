//! Where secrets stand in bytes that arrive in pieces. Time is linear in the bytes, and memory in the longest secret.

use std::collections::VecDeque;

use aho_corasick::automaton::StateID;

use crate::decoder::{Said, View};
use crate::matcher::{Found, Track};
use crate::patterns::Needles;
use crate::skip::{LINE, digits, dull, is_break, is_escape, telling};
use crate::spellings::is_digit;

/// From how many times the longest needle on a search is worth while.
const WORTH: usize = 8;

/// Looks for needles in three ways at once: in the bytes as they are, in what they say, and in that without line breaks,
/// for base64. As long as all three are in one state and no escape begins, one step is enough for all.
#[derive(Debug)]
pub(crate) struct Scan {
    /// How much was read.
    at: usize,
    /// How far the needles were searched for at once.
    searched: usize,
    /// How many digits of base64 came last, or more than are counted.
    digits: usize,
    view: View,
    bytes: Track,
    said: Track,
    joined: Track,
    /// What was found and not taken, from left to right, without an overlap.
    found: VecDeque<Found>,
}

impl Scan {
    pub(crate) fn new(needles: &Needles) -> Self {
        Self {
            at: 0,
            searched: 0,
            digits: 0,
            view: View::new(),
            bytes: Track::new(needles.start),
            said: Track::new(needles.start),
            joined: Track::new(needles.start),
            found: VecDeque::new(),
        }
    }

    /// Reads the next bytes.
    pub(crate) fn push(&mut self, needles: &Needles, mut bytes: &[u8]) {
        while let Some(&byte) = bytes.first() {
            if self.at >= self.searched && self.is_one() && self.bytes.state == needles.start {
                let skipped = self.skip(needles, bytes);
                bytes = &bytes[skipped..];
            }
            let mut read = 0;
            if self.is_one() {
                read = self.walk(needles, bytes);
            }
            if read == 0 {
                self.read(needles, byte);
                read = 1;
            }
            bytes = &bytes[read..];
        }
    }

    /// Reads the end: nothing follows.
    pub(crate) fn finish(&mut self, needles: &Needles) {
        let Self {
            view,
            digits,
            said,
            joined,
            found,
            ..
        } = self;
        view.finish(&mut |byte| look(needles, byte, digits, [said, joined], found));
    }

    /// No secret that is not found yet begins before this, but for a digit of base64.
    pub(crate) fn certain(&self, needles: &Needles) -> usize {
        let next = self.view.pending().unwrap_or(self.at);
        let tracks = [&self.bytes, &self.said, &self.joined];
        let begun = tracks.map(|track| track.begun(needles).unwrap_or(next));
        begun.into_iter().fold(next, usize::min)
    }

    /// What was found and begins before `until`.
    pub(crate) fn take(&mut self, until: usize) -> Option<Found> {
        let is_before = |found: &Found| found.start < until;
        is_before(self.found.front()?).then(|| self.found.pop_front())?
    }

    /// Whether nothing was found that was not taken.
    pub(crate) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether the three ways differ in nothing.
    fn is_one(&self) -> bool {
        let state = self.bytes.state;
        self.said.state == state && self.joined.state == state && self.view.pending().is_none()
    }

    /// Leaves out bytes in which no needle stands or begins, where a search for it is faster than steps. Returns how many.
    fn skip(&mut self, needles: &Needles, bytes: &[u8]) -> usize {
        let plain = telling(bytes, self.digits);
        self.searched = self.at + plain;
        if plain < WORTH * needles.longest {
            return 0;
        }
        let free = needles.first(&bytes[..plain]);
        self.searched = self.at + free;
        let skipped = free.saturating_sub(needles.longest);
        self.pass(&bytes[..skipped], needles.start);
        skipped
    }

    /// Goes on behind bytes that say what they are, in a state that is the same for all ways.
    fn pass(&mut self, bytes: &[u8], state: StateID) {
        for track in [&mut self.bytes, &mut self.said, &mut self.joined] {
            track.pass(self.at, bytes.len(), state);
        }
        self.digits = digits(bytes, self.digits);
        self.at += bytes.len();
    }

    /// Reads bytes that say what they are, in one step for all ways; stops at a secret. Returns how many it read.
    fn walk(&mut self, needles: &Needles, bytes: &[u8]) -> usize {
        let mut state = self.bytes.state;
        let mut read = 0;
        loop {
            if state == needles.start {
                read += needles.idle(&bytes[read..]);
            }
            let Some(&byte) = bytes.get(read) else {
                break;
            };
            if is_break(byte) {
                break;
            }
            if is_escape(byte, &bytes[read + 1..]) {
                match dull(needles, &bytes[read..]) {
                    Some(dull) if state == needles.start => read += dull,
                    _ => break,
                }
                continue;
            }
            state = needles.next(state, byte);
            read += 1;
            if needles.is_match(state) {
                break;
            }
        }
        self.pass(&bytes[..read], state);
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
            digits,
            said,
            joined,
            found,
            ..
        } = self;
        view.push(byte, &mut |byte| {
            look(needles, byte, digits, [said, joined], found);
        });
    }
}

/// Takes a byte that is said; breaks between lines of base64 are left out of what is joined.
fn look(
    needles: &Needles,
    byte: Said,
    digits: &mut usize,
    [said, joined]: [&mut Track; 2],
    found: &mut VecDeque<Found>,
) {
    said.step(needles, byte);
    said.matches(needles, byte.end, false, found);
    if is_break(byte.byte) && *digits >= LINE {
        return;
    }
    *digits = usize::from(is_digit(byte.byte)) * (*digits + 1);
    joined.step(needles, byte);
    joined.matches(needles, byte.end, true, found);
}
