//! Keeps the first and the last bytes of a stream, or its end alone.

use std::sync::Arc;

use crate::output::capture::shown_lines::ShownLines;
use crate::run_budget::OutputCounter;
use redact::{Mask, MaskedStream};

/// Keeps a fixed number of bytes from the beginning and from the end of a stream of any length.
#[derive(Debug)]
pub(crate) struct HeadTailWindow {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    /// May grow to twice the limit before it is cut back, so that each byte is moved only once.
    tail: Vec<u8>,
    total: u64,
}

/// The text that a window kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WindowText {
    pub(crate) text: String,
    /// The offset in `text` at which bytes are missing.
    pub(crate) cut_at: usize,
    /// How many bytes are missing there.
    pub(crate) cut: u64,
    /// Some bytes weren't valid UTF-8, and were replaced with U+FFFD.
    pub(crate) lossy: bool,
}

impl HeadTailWindow {
    /// Creates a window that keeps up to `limit` bytes: all of a stream, or equal parts of its beginning and its end.
    pub(crate) fn new(limit: usize) -> Self {
        Self::with_limits(limit - limit / 2, limit / 2)
    }

    /// Creates a window that keeps only the last `limit` bytes.
    pub(crate) fn tail(limit: usize) -> Self {
        Self::with_limits(0, limit)
    }

    fn with_limits(head_limit: usize, tail_limit: usize) -> Self {
        Self {
            head_limit,
            tail_limit,
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
        }
    }

    /// Adds the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.head_limit - self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        if self.tail.len() + rest.len() > 2 * self.tail_limit {
            self.tail.drain(..self.tail_excess());
        }
        self.tail.extend_from_slice(rest);
    }

    /// Returns whether the window still has all bytes of the stream.
    fn is_complete(&self) -> bool {
        self.total <= (self.head_limit + self.tail_limit) as u64
    }

    /// Returns the bytes as text, cut at character boundaries.
    pub(crate) fn into_text(mut self) -> WindowText {
        self.tail.drain(..self.tail_excess());
        if self.is_complete() {
            self.head.append(&mut self.tail);
            let (text, lossy) = decode_lossy(self.head);
            return WindowText {
                cut_at: text.len(),
                text,
                cut: 0,
                lossy,
            };
        }
        self.head.truncate(complete_chars_len(&self.head));
        self.tail.drain(..leading_continuation_len(&self.tail));
        let kept = self.head.len() + self.tail.len();
        let (mut text, lossy_head) = decode_lossy(self.head);
        let (tail, lossy_tail) = decode_lossy(self.tail);
        let cut_at = text.len();
        text.push_str(&tail);
        let cut = self.total - kept as u64;
        WindowText {
            text,
            cut_at,
            cut,
            lossy: lossy_head || lossy_tail,
        }
    }

    /// Returns by how many bytes the tail exceeds its limit.
    fn tail_excess(&self) -> usize {
        self.tail.len().saturating_sub(self.tail_limit)
    }
}

fn decode_lossy(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    }
}

/// Returns the length without an incomplete character at the end.
fn complete_chars_len(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(4);
    let start = (tail..bytes.len()).rfind(|at| !is_continuation(bytes[*at]));
    match start {
        Some(start) if str::from_utf8(&bytes[start..]).is_err_and(|e| e.error_len().is_none()) => {
            start
        }
        _ => bytes.len(),
    }
}

/// Returns how many leading bytes belong to a character whose start is missing.
fn leading_continuation_len(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| is_continuation(**byte))
        .count()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

// Captures the end of an output.

/// The last bytes of a stream, masked.
#[derive(Debug)]
pub(crate) struct TailCapture {
    mask: Arc<Mask>,
    masked: MaskedStream,
    window: HeadTailWindow,
    /// Counts every byte for the run's output budget.
    counter: OutputCounter,
}

impl TailCapture {
    /// Creates a capture of the last `limit` bytes. All bytes are counted with `counter`.
    pub(crate) fn new(limit: usize, mask: Arc<Mask>, counter: OutputCounter) -> Self {
        Self {
            counter,
            masked: MaskedStream::new(Arc::clone(&mask)),
            mask,
            window: HeadTailWindow::tail(limit),
        }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Self {
            masked,
            window,
            counter,
            ..
        } = self;
        counter.add(bytes.len());
        masked.push(bytes, |bytes| window.push(bytes));
    }

    /// Returns the end of the output as a terminal would show it, without one trailing newline.
    pub(crate) fn finish(mut self) -> String {
        let Self { masked, window, .. } = &mut self;
        masked.finish(|bytes| window.push(bytes));
        let printed = self.window.into_text().text;
        let (mut lines, mut shown) = (ShownLines::default(), Vec::new());
        lines.push(printed.as_bytes(), &mut |bytes| {
            shown.extend_from_slice(bytes);
        });
        lines.finish(&mut |bytes| shown.extend_from_slice(bytes));
        let shown = String::from_utf8_lossy(&shown);
        let mut text = self.mask.apply(&shown).into_owned();
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window_text(limit: usize, chunks: &[Vec<u8>]) -> WindowText {
        let mut window = HeadTailWindow::new(limit);
        for chunk in chunks {
            window.push(chunk);
        }
        window.into_text()
    }

    proptest! {
        /// A text can be cut anywhere without broken characters, and every missing byte is counted.
        #[test]
        fn head_and_tail_of_any_text(text in "\\PC{0,60}", limit in 0_usize..80, size in 1_usize..9) {
            let chunks: Vec<Vec<u8>> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let view = window_text(limit, &chunks);
            prop_assert!(!view.lossy);
            let (head, tail) = view.text.split_at(view.cut_at);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert_eq!((view.text.len() as u64) + view.cut, text.len() as u64);
            prop_assert!(view.cut == 0 || view.text.len() <= limit);
            prop_assert_eq!(view.cut == 0, text.len() <= limit);
            prop_assert!(view.cut == 0 || view.text.len() + 6 >= limit);
        }

        /// Invalid bytes become U+FFFD, and the result is marked as lossy. Characters that arrive in pieces are joined.
        #[test]
        fn any_bytes_are_text(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9)) {
            let all = chunks.concat();
            let view = window_text(16, &chunks);
            prop_assert!(all.len() > 16 || view.lossy == str::from_utf8(&all).is_err());
        }
    }

    #[test]
    fn a_tail_window_keeps_only_the_end() {
        let mut window = HeadTailWindow::tail(4);
        (0..100).for_each(|_| window.push(b"0123456789"));
        assert_eq!(window.into_text().text, "6789");
    }
}
