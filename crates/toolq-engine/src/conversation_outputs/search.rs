//! Looks for a pattern in a kept output, in a window of limited size.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use regex::bytes::Regex;

use crate::conversation_outputs::char_boundary::floor_boundary;
use crate::conversation_outputs::page::OutputFile;

/// How much of an output is held in memory.
const WINDOW_BYTES: usize = 1 << 20;
/// How much of a window is left to the next one, so that a match of up to this length is found wherever it is.
const OVERLAP_BYTES: usize = 64 << 10;
/// How much of a line is shown before a match, and how much from its beginning on.
const EXCERPT_BYTES_BEFORE: usize = 100;
const EXCERPT_BYTES: usize = 400;

/// What a search found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FoundExcerpts {
    /// Lines of the form `OFFSET: EXCERPT`.
    pub(super) text: String,
    pub(super) count: usize,
    /// Where to continue the search. `None` if all of the output was searched.
    pub(super) next: Option<u64>,
}

/// A part of the output, and where to continue the search in it.
struct SearchWindow {
    bytes: Vec<u8>,
    /// The offset of its first byte.
    begin: u64,
    /// The place in `bytes` where the search continues. What is before it is context for `^` and `\b`.
    position: usize,
    is_last: bool,
}

/// Returns the parts of lines that match, from `offset` on, at most `limit` bytes of text. `is_canceled` is checked
/// repeatedly.
pub(super) fn search_output(
    output: &OutputFile,
    pattern: &Regex,
    offset: u64,
    limit: usize,
    is_canceled: &dyn Fn() -> bool,
) -> io::Result<FoundExcerpts> {
    let mut found = FoundExcerpts::default();
    let mut window = SearchWindow::read(output, offset)?;
    while !is_canceled() {
        let searched = if window.is_last {
            window.bytes.len()
        } else {
            window.bytes.len() - OVERLAP_BYTES
        };
        let matched = window.position <= window.bytes.len();
        let matched = matched.then(|| pattern.find_at(&window.bytes, window.position));
        let matched = matched.flatten().map(|found| found.range());
        let matched = matched.filter(|range| range.start <= searched);
        let Some(range) = matched else {
            if window.is_last {
                return Ok(found);
            }
            let next = window.begin + window.position.max(searched) as u64;
            window = SearchWindow::read(output, next)?;
            continue;
        };
        // Nothing is left after the last line break.
        if range.start == window.bytes.len() && window.is_last && window.ends_line() {
            return Ok(found);
        }
        let matched_end = range.end;
        let excerpt = window.excerpt(range);
        let at = window.begin + excerpt.start as u64;
        let line = format!("{at}: {}\n", window.text_of(&excerpt));
        if found.count > 0 && found.text.len() + line.len() > limit {
            found.next = Some(at);
            return Ok(found);
        }
        let _ = found.text.write_str(&line);
        found.count += 1;
        window.position = window.after(excerpt.end.max(matched_end));
    }
    Ok(found)
}

impl SearchWindow {
    fn read(output: &OutputFile, offset: u64) -> io::Result<Self> {
        let begin = offset.saturating_sub(EXCERPT_BYTES_BEFORE as u64);
        let bytes = output.read_bytes(begin, begin + WINDOW_BYTES as u64)?;
        Ok(Self {
            is_last: begin + bytes.len() as u64 >= output.len,
            position: usize::try_from(offset - begin).unwrap_or(usize::MAX),
            bytes,
            begin,
        })
    }

    /// Returns the part of the lines of a match that is shown.
    fn excerpt(&self, matched: Range<usize>) -> Range<usize> {
        let is_break = |byte: &u8| *byte == b'\n';
        let before = &self.bytes[self.position.min(matched.start)..matched.start];
        let line = before.iter().rposition(is_break).map(|at| at + 1);
        let line = self.position.min(matched.start) + line.unwrap_or(0);
        let begin = line.max(matched.start.saturating_sub(EXCERPT_BYTES_BEFORE));
        let rest = &self.bytes[matched.end..];
        let line_end = rest.iter().position(is_break);
        let line_end = line_end.map_or(self.bytes.len(), |at| matched.end + at);
        let end = line_end.min(matched.start + EXCERPT_BYTES);
        let (begin, end) = (
            floor_boundary(&self.bytes, begin).max(self.position.min(matched.start)),
            floor_boundary(&self.bytes, end),
        );
        begin..end.max(begin)
    }

    /// Returns an excerpt with a mark at each end where its line continues.
    fn text_of(&self, excerpt: &Range<usize>) -> String {
        let text = String::from_utf8_lossy(&self.bytes[excerpt.clone()]);
        let text = text.trim_end_matches('\r');
        let begins_line = excerpt.start == 0 && self.begin == 0
            || excerpt.start > 0 && self.bytes[excerpt.start - 1] == b'\n';
        let ends_line = match self.bytes.get(excerpt.end) {
            Some(byte) => *byte == b'\n',
            None => self.is_last,
        };
        let mark = |is_whole| if is_whole { "" } else { "…" };
        format!("{}{text}{}", mark(begins_line), mark(ends_line))
    }

    /// Returns where to search after what was found: after its line break, and at least one byte further.
    fn after(&self, end: usize) -> usize {
        let at_break = self.bytes.get(end) == Some(&b'\n');
        let next = end + usize::from(at_break);
        next.max(self.position + 1)
    }

    fn ends_line(&self) -> bool {
        self.bytes.last() == Some(&b'\n')
    }
}
