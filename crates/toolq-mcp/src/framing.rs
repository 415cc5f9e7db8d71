//! Splits the bytes of a stdio connection into lines. Each line is one message.
//!
//! Official SDKs accept more than the specification asks for, and so do we: `\r\n`, a byte order mark before the first
//! line, and blank lines.

#[cfg(test)]
mod tests;

use std::mem;

use memchr::memchr;

/// How much of an overlong line is kept. Enough to find the id of the request that it answers.
pub(crate) const KEPT_BYTES: usize = 4 << 10;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// A whole line, without its line break.
    Line(&'b [u8]),
    /// A line over the limit. Only its beginning is kept.
    TooLong {
        /// The first bytes of the line.
        start: &'b [u8],
        /// The length of the whole line.
        bytes: u64,
    },
}

/// Splits bytes into lines of a limited length, in memory of that length.
#[derive(Debug)]
pub struct LineFramer {
    max_line_bytes: usize,
    /// The beginning of a line whose end hasn't come.
    partial: Vec<u8>,
    /// How many bytes of the line were dropped because it is too long.
    dropped_bytes: u64,
    is_first_line: bool,
}

impl LineFramer {
    /// Creates a framer for lines of at most `max_line_bytes`, at least 4 KiB.
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            max_line_bytes: max_line_bytes.max(KEPT_BYTES),
            partial: Vec::new(),
            dropped_bytes: 0,
            is_first_line: true,
        }
    }

    /// Takes the next bytes, and calls `on_frame` for every line that ends in them.
    pub fn push(&mut self, mut bytes: &[u8], mut on_frame: impl FnMut(Frame<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let line = &bytes[..end];
            bytes = &bytes[end + 1..];
            if self.partial.is_empty() && self.dropped_bytes == 0 && end <= self.max_line_bytes {
                emit(line, &mut self.is_first_line, &mut on_frame);
            } else {
                self.keep(line);
                self.end_line(&mut on_frame);
            }
        }
        self.keep(bytes);
    }

    /// Ends the connection. A last line without a line break counts, too.
    pub fn finish(mut self, mut on_frame: impl FnMut(Frame<'_>)) {
        if !self.partial.is_empty() {
            self.end_line(&mut on_frame);
        }
    }

    /// Adds to the line whose end hasn't come. Drops what is over the limit.
    fn keep(&mut self, bytes: &[u8]) {
        if self.dropped_bytes == 0 && self.partial.len() + bytes.len() <= self.max_line_bytes {
            self.partial.extend_from_slice(bytes);
            return;
        }
        let missing = KEPT_BYTES
            .saturating_sub(self.partial.len())
            .min(bytes.len());
        self.partial.extend_from_slice(&bytes[..missing]);
        let surplus = self.partial.len() - self.partial.len().min(KEPT_BYTES);
        self.partial.truncate(KEPT_BYTES);
        self.partial.shrink_to_fit();
        self.dropped_bytes += (surplus + bytes.len() - missing) as u64;
    }

    fn end_line(&mut self, on_frame: &mut impl FnMut(Frame<'_>)) {
        let line = mem::take(&mut self.partial);
        let dropped = mem::take(&mut self.dropped_bytes);
        if dropped == 0 {
            emit(&line, &mut self.is_first_line, on_frame);
        } else {
            self.is_first_line = false;
            on_frame(Frame::TooLong {
                start: &line,
                bytes: line.len() as u64 + dropped,
            });
        }
    }
}

/// Hands over a line without its carriage return and byte order mark, unless it is blank.
fn emit(line: &[u8], is_first_line: &mut bool, on_frame: &mut impl FnMut(Frame<'_>)) {
    let line = if mem::take(is_first_line) {
        line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line)
    } else {
        line
    };
    let line = line.trim_ascii();
    if !line.is_empty() {
        on_frame(Frame::Line(line));
    }
}
