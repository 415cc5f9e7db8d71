//! Finds secrets in bytes that arrive in pieces, in time linear in the bytes and memory linear in the longest secret.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use aho_corasick::automaton::StateID;

use crate::decoder::{DecodedByte, Decoder};
use crate::matcher::{Matcher, SecretMatch};
use crate::patterns::Patterns;
use crate::skip::{
    MIN_BASE64_LINE_DIGITS, escaped_quote_len, is_line_break, may_begin_escape, plain_prefix_len,
    trailing_base64_digits,
};
use crate::spellings::is_base64_digit;

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
