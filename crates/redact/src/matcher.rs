//! Matches one view of a text (raw, decoded or joined) against the patterns, and maps its offsets back to the text.

use std::collections::VecDeque;

use aho_corasick::automaton::StateID;

use crate::decoder::DecodedByte;
use crate::patterns::Patterns;
use crate::spellings::SpellingEdges;

/// A secret that was found, as a byte range of the text. Overlapping matches are merged into one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecretMatch {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) edges: SpellingEdges,
}

/// Matches one view of a text.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) state: StateID,
    /// How many bytes of its view it has read.
    bytes_read: usize,
    /// Maps offsets in the view to offsets in the text: from byte `.0` of the view on, add `.1`.
    shifts: VecDeque<(usize, usize)>,
}

impl Matcher {
    pub(crate) fn new(state: StateID) -> Self {
        Self {
            state,
            bytes_read: 0,
            shifts: VecDeque::new(),
        }
    }

    /// Records that the next byte of the view comes from `start` in the text.
    fn record_shift(&mut self, start: usize) {
        let shift = start - self.bytes_read;
        if self.shifts.back().map_or(0, |(_, shift)| *shift) != shift {
            self.shifts.push_back((self.bytes_read, shift));
        }
    }

    pub(crate) fn advance(&mut self, start: usize, count: usize, state: StateID) {
        self.record_shift(start);
        self.bytes_read += count;
        self.state = state;
    }

    pub(crate) fn step(&mut self, patterns: &Patterns, byte: DecodedByte) {
        self.record_shift(byte.start);
        self.bytes_read += 1;
        self.state = patterns.next_state(self.state, byte.byte);
        let needed = self.bytes_read.saturating_sub(patterns.max_pattern_bytes);
        while self.shifts.get(1).is_some_and(|(at, _)| *at <= needed) {
            self.shifts.pop_front();
        }
    }

    /// Returns the offset in the text of byte `at` of the view.
    fn text_offset(&self, at: usize) -> usize {
        let next_shift = self.shifts.partition_point(|(from, _)| *from <= at);
        let shift = next_shift
            .checked_sub(1)
            .map_or(0, |index| self.shifts[index].1);
        at + shift
    }

    /// Returns where in the text a pattern may have started, if its end is still missing.
    pub(crate) fn pending_start(&self, patterns: &Patterns) -> Option<usize> {
        let begun = patterns.partial_match_len(self.state);
        (begun > 0).then(|| self.text_offset(self.bytes_read - begun))
    }

    /// Adds the patterns that end here, at `end` in the text, to `matches`; with `base64_only`, only those of base64.
    pub(crate) fn collect_matches(
        &self,
        patterns: &Patterns,
        end: usize,
        base64_only: bool,
        matches: &mut VecDeque<SecretMatch>,
    ) {
        for (len, edges) in patterns.matches_at(self.state) {
            if edges.is_base64 || !base64_only {
                let start = self.text_offset(self.bytes_read - len);
                if end - start < edges.min_text_bytes {
                    continue;
                }
                push_merged(SecretMatch { start, end, edges }, matches);
            }
        }
    }
}

/// Appends a match, merged with the earlier ones that it overlaps.
fn push_merged(mut new: SecretMatch, matches: &mut VecDeque<SecretMatch>) {
    while let Some(last) = matches.pop_back_if(|last| last.end > new.start) {
        let (before, after) = (new.edges.shares_digit_before, new.edges.shares_digit_after);
        new.edges.shares_digit_before = before && new.start <= last.start
            || last.edges.shares_digit_before && last.start <= new.start;
        new.edges.shares_digit_after =
            after && new.end >= last.end || last.edges.shares_digit_after && last.end >= new.end;
        new.start = new.start.min(last.start);
        new.end = new.end.max(last.end);
    }
    matches.push_back(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(start: usize, end: usize, before: bool, after: bool) -> SecretMatch {
        SecretMatch {
            start,
            end,
            edges: SpellingEdges {
                is_base64: true,
                shares_digit_before: before,
                shares_digit_after: after,
                min_text_bytes: 0,
            },
        }
    }

    /// A shared digit counts only at an edge that is also an edge of the merged match.
    #[test]
    fn overlapping_matches_are_merged_with_their_outer_edges() {
        let (yes, no) = (true, false);
        for (first, second, merged) in [
            (
                found(2, 8, yes, no),
                found(4, 10, no, yes),
                (2, 10, yes, yes),
            ),
            (found(2, 8, no, yes), found(4, 10, yes, no), (2, 10, no, no)),
            (found(4, 8, yes, no), found(2, 10, no, no), (2, 10, no, no)),
            (
                found(4, 8, no, yes),
                found(2, 10, yes, yes),
                (2, 10, yes, yes),
            ),
            (found(2, 8, yes, yes), found(2, 8, no, no), (2, 8, yes, yes)),
            (found(2, 8, no, no), found(2, 8, yes, yes), (2, 8, yes, yes)),
            (found(2, 8, no, no), found(2, 8, no, no), (2, 8, no, no)),
        ] {
            let mut matches = VecDeque::from([found(0, 1, no, no), first]);
            push_merged(second, &mut matches);
            let SecretMatch { start, end, edges } = matches[1];
            let (before, after) = (edges.shares_digit_before, edges.shares_digit_after);
            assert_eq!((start, end, before, after), merged, "{first:?} {second:?}");
            assert_eq!(matches.len(), 2);
        }
    }

    #[test]
    fn adjacent_matches_stay_apart() {
        let mut matches = VecDeque::from([found(2, 8, false, false)]);
        push_merged(found(8, 9, false, false), &mut matches);
        assert_eq!(matches.len(), 2);
    }
}
