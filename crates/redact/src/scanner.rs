//! Finds secrets in bytes that arrive in pieces, in time linear in the bytes and memory linear in the longest secret.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use aho_corasick::automaton::StateID;
use memchr::{memchr2_iter, memchr3_iter};

use crate::decoder::{DecodedByte, Decoder};
use crate::spellings::{Patterns, SpellingEdges, is_base64_digit};

/// A bulk search is worthwhile from this many times the longest pattern on.
const MIN_SEARCH_FACTOR: usize = 8;

/// Looks for patterns in three views of the text at once: the raw bytes, the decoded bytes, and, for base64, the
/// decoded bytes joined across line breaks. While all three are in the same state and no escape starts, one step
/// advances all.
#[derive(Debug)]
pub(crate) struct SecretScanner {
    /// How many bytes were read.
    position: usize,
    /// Up to where a bulk search was done or ruled out.
    searched_until: usize,
    /// How many base64 digits came last; exact only below [`MIN_BASE64_LINE_DIGITS`].
    digit_run: usize,
    decoder: Decoder,
    raw: Matcher,
    decoded: Matcher,
    joined: Matcher,
    /// Matches that weren't taken yet, in text order and without overlaps.
    matches: VecDeque<SecretMatch>,
}

impl SecretScanner {
    pub(crate) fn new(patterns: &Patterns) -> Self {
        Self {
            position: 0,
            searched_until: 0,
            digit_run: 0,
            decoder: Decoder::new(),
            raw: Matcher::new(patterns.start_state),
            decoded: Matcher::new(patterns.start_state),
            joined: Matcher::new(patterns.start_state),
            matches: VecDeque::new(),
        }
    }

    /// Scans the next bytes.
    pub(crate) fn push(&mut self, patterns: &Patterns, mut bytes: &[u8]) {
        while let Some(&byte) = bytes.first() {
            if self.position >= self.searched_until
                && self.is_in_sync()
                && self.raw.state == patterns.start_state
            {
                let skipped = self.skip_unmatched(patterns, bytes);
                bytes = &bytes[skipped..];
            }
            let mut consumed = 0;
            if self.is_in_sync() {
                consumed = self.read_in_sync(patterns, bytes);
            }
            if consumed == 0 {
                self.read_byte(patterns, byte);
                consumed = 1;
            }
            bytes = &bytes[consumed..];
        }
    }

    /// Scans what is pending: no more bytes follow.
    pub(crate) fn finish(&mut self, patterns: &Patterns) {
        let Self {
            decoder,
            digit_run,
            decoded,
            joined,
            matches,
            ..
        } = self;
        decoder.finish(&mut |byte| {
            match_decoded(patterns, byte, digit_run, [decoded, joined], matches);
        });
    }

    /// Returns an offset before which no undetected secret can start, except for one base64 digit.
    pub(crate) fn safe_until(&self, patterns: &Patterns) -> usize {
        let next = self.decoder.pending_start().unwrap_or(self.position);
        let matchers = [&self.raw, &self.decoded, &self.joined];
        let pending_starts =
            matchers.map(|matcher| matcher.pending_start(patterns).unwrap_or(next));
        pending_starts.into_iter().fold(next, usize::min)
    }

    /// Removes and returns the first match if it starts before `until`.
    pub(crate) fn take_match_before(&mut self, until: usize) -> Option<SecretMatch> {
        let is_before = |found: &SecretMatch| found.start < until;
        is_before(self.matches.front()?).then(|| self.matches.pop_front())?
    }

    /// Returns where the first match starts that wasn't taken.
    pub(crate) fn next_match_start(&self) -> Option<usize> {
        self.matches.front().map(|found| found.start)
    }

    /// Returns the first match that begins at or before `offset` and ends after it.
    pub(crate) fn match_at(&self, offset: usize) -> Option<SecretMatch> {
        let is_there = |found: &&SecretMatch| found.start <= offset && offset < found.end;
        let found = self.matches.iter().filter(is_there);
        found.min_by_key(|found| found.start).copied()
    }

    /// Returns whether no match is left to take.
    pub(crate) fn is_clean(&self) -> bool {
        self.matches.is_empty()
    }

    /// Returns whether the three views are in the same state, with nothing left to decode.
    fn is_in_sync(&self) -> bool {
        let state = self.raw.state;
        self.decoded.state == state
            && self.joined.state == state
            && self.decoder.pending_start().is_none()
    }

    /// Skips bytes in which no pattern occurs or starts, if a bulk search pays off. Returns how many.
    fn skip_unmatched(&mut self, patterns: &Patterns, bytes: &[u8]) -> usize {
        let plain_len = plain_prefix_len(bytes, self.digit_run);
        self.searched_until = self.position + plain_len;
        if plain_len < MIN_SEARCH_FACTOR * patterns.max_pattern_bytes {
            return 0;
        }
        let unmatched_len = patterns.find_first(&bytes[..plain_len]);
        self.searched_until = self.position + unmatched_len;
        let skipped = unmatched_len.saturating_sub(patterns.max_pattern_bytes);
        self.advance_all(&bytes[..skipped], patterns.start_state);
        skipped
    }

    /// Advances all views over plain bytes, which are the same in each of them, to `state`.
    fn advance_all(&mut self, bytes: &[u8], state: StateID) {
        for matcher in [&mut self.raw, &mut self.decoded, &mut self.joined] {
            matcher.advance(self.position, bytes.len(), state);
        }
        self.digit_run = trailing_base64_digits(bytes, self.digit_run);
        self.position += bytes.len();
    }

    /// Reads plain bytes, with one step for all views, and stops at a match. Returns how many bytes it read.
    fn read_in_sync(&mut self, patterns: &Patterns, bytes: &[u8]) -> usize {
        let mut state = self.raw.state;
        let mut consumed = 0;
        loop {
            if state == patterns.start_state {
                consumed += patterns.skippable_prefix_len(&bytes[consumed..]);
            }
            let Some(&byte) = bytes.get(consumed) else {
                break;
            };
            if is_line_break(byte) {
                break;
            }
            if may_begin_escape(byte, &bytes[consumed + 1..]) {
                match escaped_quote_len(patterns, &bytes[consumed..]) {
                    Some(quote_len) if state == patterns.start_state => consumed += quote_len,
                    _ => break,
                }
                continue;
            }
            state = patterns.next_state(state, byte);
            consumed += 1;
            if patterns.is_match(state) {
                break;
            }
        }
        self.advance_all(&bytes[..consumed], state);
        if consumed > 0 && patterns.is_match(state) {
            for matcher in [&self.raw, &self.decoded, &self.joined] {
                matcher.collect_matches(patterns, self.position, false, &mut self.matches);
            }
        }
        consumed
    }

    /// Reads one byte in each view.
    fn read_byte(&mut self, patterns: &Patterns, byte: u8) {
        let (start, end) = (self.position, self.position + 1);
        self.position = end;
        let byte = DecodedByte { byte, start, end };
        self.raw.step(patterns, byte);
        self.raw
            .collect_matches(patterns, end, false, &mut self.matches);
        let Self {
            decoder,
            digit_run,
            decoded,
            joined,
            matches,
            ..
        } = self;
        decoder.push(byte, &mut |byte| {
            match_decoded(patterns, byte, digit_run, [decoded, joined], matches);
        });
    }
}

/// Feeds one decoded byte to the decoded and the joined view. The latter skips the breaks between base64 lines.
fn match_decoded(
    patterns: &Patterns,
    byte: DecodedByte,
    digit_run: &mut usize,
    [decoded, joined]: [&mut Matcher; 2],
    matches: &mut VecDeque<SecretMatch>,
) {
    decoded.step(patterns, byte);
    decoded.collect_matches(patterns, byte.end, false, matches);
    if is_line_break(byte.byte) && *digit_run >= MIN_BASE64_LINE_DIGITS {
        return;
    }
    *digit_run = usize::from(is_base64_digit(byte.byte)) * (*digit_run + 1);
    joined.step(patterns, byte);
    joined.collect_matches(patterns, byte.end, true, matches);
}

// Finds plain bytes, which decode to themselves and so needn't be read in more than one view.

/// Fewer base64 digits than this don't count as a line of base64. Encoders wrap lines at 64 or 76.
const MIN_BASE64_LINE_DIGITS: usize = 16;
/// Number of backslashes before a quote in JSON in JSON in JSON.
const MAX_QUOTE_BACKSLASHES: usize = 7;

/// Returns the length of the plain prefix in which no base64 line ends. `digits_before` base64 digits came before it.
fn plain_prefix_len(bytes: &[u8], digits_before: usize) -> usize {
    let mut escapes = memchr3_iter(b'\\', b'%', b'&', bytes);
    let escape = escapes.find(|at| may_begin_escape(bytes[*at], &bytes[at + 1..]));
    let plain = &bytes[..escape.unwrap_or(bytes.len())];
    let mut breaks = memchr2_iter(b'\n', b'\r', plain);
    let line_end = breaks
        .find(|at| trailing_base64_digits(&plain[..*at], digits_before) >= MIN_BASE64_LINE_DIGITS);
    line_end.unwrap_or(plain.len())
}

/// Returns whether `byte`, followed by `rest`, may start an escape.
fn may_begin_escape(byte: u8, rest: &[u8]) -> bool {
    match (byte, rest.first()) {
        (b'\\', _) | (b'%' | b'&', None) => true,
        (b'%', Some(next)) => next.is_ascii_hexdigit() || b"\\&".contains(next),
        (b'&', Some(next)) => next.is_ascii_alphabetic() || b"#\\".contains(next),
        _ => false,
    }
}

/// Returns the length of a quote with up to [`MAX_QUOTE_BACKSLASHES`] backslashes, if no pattern can start in it. JSON
/// is full of such quotes.
fn escaped_quote_len(patterns: &Patterns, bytes: &[u8]) -> Option<usize> {
    let backslashes = bytes
        .iter()
        .take_while(|byte| **byte == b'\\')
        .take(MAX_QUOTE_BACKSLASHES)
        .count();
    let is_quote = bytes.get(backslashes) == Some(&b'"');
    let is_skippable =
        is_quote && patterns.starts_no_pattern(b'"') && patterns.starts_no_pattern(b'\\');
    is_skippable.then_some(backslashes + 1)
}

/// Counts the base64 digits that `bytes` end with, up to [`MIN_BASE64_LINE_DIGITS`]. If all bytes are digits, adds
/// `digits_before`.
fn trailing_base64_digits(bytes: &[u8], digits_before: usize) -> usize {
    let last = bytes.iter().rev().take(MIN_BASE64_LINE_DIGITS);
    let digits = last.take_while(|byte| is_base64_digit(**byte)).count();
    if digits == bytes.len() {
        digits + digits_before
    } else {
        digits
    }
}

/// Returns whether this byte ends a line.
fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

// Matches one view of a text (raw, decoded or joined) against the patterns, and maps its offsets back to the text.

/// A secret that was found, as a byte range of the text. Overlapping matches are merged into one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecretMatch {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) edges: SpellingEdges,
}

/// Matches one view of a text.
#[derive(Debug)]
struct Matcher {
    state: StateID,
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

    fn advance(&mut self, start: usize, count: usize, state: StateID) {
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
    fn collect_matches(
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
mod skip_tests {
    use super::*;

    #[test]
    fn a_sign_begins_an_escape_only_before_what_may_continue_it() {
        for begin in [
            "\\", "\\q", "%", "%4", "%f", "%\\", "%&", "&", "&#", "&lt;", "&E", "&\\",
        ] {
            assert!(
                may_begin_escape(begin.as_bytes()[0], &begin.as_bytes()[1..]),
                "{begin}"
            );
        }
        for innocent in ["% ", "%g", "%%", "& ", "&&", "&1", "#", "a"] {
            let (sign, rest) = innocent.as_bytes().split_at(1);
            assert!(!may_begin_escape(sign[0], rest), "{innocent}");
        }
    }

    #[test]
    fn a_text_is_plain_up_to_its_first_escape_or_the_end_of_a_base64_line() {
        let line = "A".repeat(MIN_BASE64_LINE_DIGITS);
        let (short, long) = (&line[1..], &line[..]);
        for (plain, rest) in [
            ("an innocent text: 100 % & more\n", ""),
            ("an innocent text: 100 % & more\n", "%41"),
            (&format!("{short}\n\r{short}!"), r"\n"),
            (&format!("{short}\n{long}"), "\n"),
            (&format!("!{long}"), "\r\n"),
        ] {
            let text = format!("{plain}{rest}");
            assert_eq!(plain_prefix_len(text.as_bytes(), 0), plain.len(), "{text}");
        }
        // With the digit before it, the line is long enough.
        let text = format!("{short}\n");
        assert_eq!(plain_prefix_len(text.as_bytes(), 1), short.len());
    }
}

#[cfg(test)]
mod matcher_tests {
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
