//! Captures an output as it arrives. Memory use is bounded, however much arrives. If it is text: masks it, keeps its head
//! and tail, and saves the whole to a file if it is cut.

use std::path::PathBuf;
use std::sync::Arc;

use crate::output::saved_file::SavedFile;
use crate::output::shown_lines::ShownLines;
use redact::{Mask, MaskedStream};
use toolq_core::types::{CaptureStats, Tool};

/// How many bytes of the end of stderr are kept.
const STDERR_TAIL_BYTES: u64 = 4 << 10;

/// How much of an output is kept, and where it is saved.
#[derive(Debug, Clone)]
pub(crate) struct CaptureLimits {
    /// How many bytes to show to the model.
    pub(crate) max_shown: u64,
    /// How many bytes to save to a file.
    pub(crate) max_saved: u64,
    /// The directory for saved outputs. `None` saves nothing.
    pub(crate) save_dir: Option<PathBuf>,
    /// Whether the model is shown what a terminal would show. What is saved is whole.
    pub(crate) shows_lines: bool,
    /// Only the end is shown.
    pub(crate) is_tail: bool,
}

impl CaptureLimits {
    pub(crate) fn new(tool: &Tool, outputs: Option<&PathBuf>) -> Self {
        Self {
            max_shown: tool.max_output,
            max_saved: tool.max_saved,
            save_dir: outputs.cloned(),
            shows_lines: false,
            is_tail: false,
        }
    }

    /// The end of what a program writes to stderr.
    pub(crate) fn of_stderr() -> Self {
        Self {
            max_shown: STDERR_TAIL_BYTES,
            max_saved: 0,
            save_dir: None,
            shows_lines: true,
            is_tail: true,
        }
    }
}

/// A text that is still arriving.
#[derive(Debug)]
pub(crate) struct TextCapture {
    total_bytes: u64,
    mask: Arc<Mask>,
    masked: MaskedStream,
    retained: RetainedText,
}

#[derive(Debug)]
struct RetainedText {
    window: HeadTailWindow,
    shown: Option<ShownLines>,
    limits: CaptureLimits,
    /// All that was printed, until it is more than can be shown. Then it goes to the file.
    printed: Option<Vec<u8>>,
    file: Option<SavedFile>,
    /// The last byte was a newline. It may have to be trimmed, so it is held back until more bytes follow it.
    pending_newline: bool,
}

impl TextCapture {
    pub(crate) fn new(limits: CaptureLimits, mask: Arc<Mask>) -> Self {
        let max_shown = usize::try_from(limits.max_shown).unwrap_or(usize::MAX);
        let window = if limits.is_tail {
            HeadTailWindow::tail(max_shown)
        } else {
            HeadTailWindow::new(max_shown)
        };
        Self {
            total_bytes: 0,
            masked: MaskedStream::new(Arc::clone(&mask)),
            mask,
            retained: RetainedText {
                window,
                shown: limits.shows_lines.then(ShownLines::default),
                printed: limits.save_dir.as_ref().map(|_| Vec::new()),
                limits,
                file: None,
                pending_newline: false,
            },
        }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let Self {
            masked, retained, ..
        } = self;
        masked.push(bytes, |bytes| retained.push(bytes));
    }

    /// Returns the text, without one trailing newline if `trim_newline`, and what was cut, saved or replaced.
    pub(crate) fn finish(mut self, trim_newline: bool) -> (String, CaptureStats) {
        let Self {
            masked, retained, ..
        } = &mut self;
        masked.finish(|bytes| retained.push(bytes));
        retained.finish(trim_newline);
        let mut window_text = self.retained.window.into_text();
        if self.retained.shown.is_some_and(|shown| shown.has_changed) {
            // A color in the middle of a secret has kept it from being found.
            let (head, tail) = window_text.text.split_at(window_text.cut_at);
            let [head, tail] = [head, tail].map(|part| self.mask.apply(part));
            window_text.cut_at = head.len();
            window_text.text = format!("{head}{tail}");
        }
        let text = window_text.text;
        let stats = CaptureStats {
            total_bytes: self.total_bytes,
            cut_bytes: window_text.cut,
            cut_offset: window_text.cut_at,
            // If the file couldn't be written, nothing was saved, and the text says so.
            saved_path: (self.retained.file)
                .filter(|_| window_text.cut > 0)
                .and_then(|file| file.persist().ok())
                .map(Box::new),
            attachments: Box::default(),
            lossy: window_text.lossy,
            killed_leftovers: 0,
            was_printing: false,
            cached: None,
        };
        (text, stats)
    }
}

impl RetainedText {
    fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.pending_newline) {
            self.append(b"\n");
        }
        let text = bytes.strip_suffix(b"\n");
        self.pending_newline = text.is_some();
        self.append(text.unwrap_or(bytes));
    }

    /// Handles a trailing newline: it always belongs to the file, but to the text only if it isn't trimmed.
    fn finish(&mut self, trim_newline: bool) {
        if std::mem::take(&mut self.pending_newline) {
            if trim_newline {
                self.save(b"\n");
            } else {
                self.append(b"\n");
            }
        }
        if let Some(shown) = &mut self.shown {
            shown.finish(&mut |bytes| self.window.push(bytes));
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        if let Some(printed) = &mut self.printed
            && (printed.len() + bytes.len()) as u64 <= self.limits.max_shown
        {
            printed.extend_from_slice(bytes);
        } else {
            if let Some(printed) = self.printed.take() {
                self.open_file();
                self.save(&printed);
            }
            self.save(bytes);
        }
        match &mut self.shown {
            Some(shown) => shown.push(bytes, &mut |bytes| self.window.push(bytes)),
            None => self.window.push(bytes),
        }
    }

    fn save(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.file
            && file.push(bytes).is_err()
        {
            self.file = None;
        }
    }

    fn open_file(&mut self) {
        let dir = self.limits.save_dir.as_ref();
        let dir = dir.filter(|_| self.limits.max_saved > 0);
        self.file = dir.and_then(|dir| SavedFile::create(dir, self.limits.max_saved).ok());
    }
}

// Captures an output that must be parsed as a whole: JSON or content blocks.

/// A document that is still arriving.
#[derive(Debug, Default)]
pub(crate) struct DocumentCapture {
    bytes: Vec<u8>,
    /// Including those that weren't kept.
    pub(crate) total_bytes: u64,
}

impl DocumentCapture {
    /// Larger documents aren't parsed: they would have to be kept in memory.
    pub(crate) const MAX_BYTES: usize = 16 << 20;

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let left = Self::MAX_BYTES - self.bytes.len();
        let kept = left.min(bytes.len());
        make_room(&mut self.bytes, kept, Self::MAX_BYTES);
        self.bytes.extend_from_slice(&bytes[..kept]);
    }

    /// Returns the bytes that were kept: the whole document, or its beginning.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the document as text, without the byte order mark that some programs write.
    ///
    /// # Errors
    /// Why it can't be parsed: it is too large, or not valid UTF-8.
    pub(crate) fn text(&self) -> Result<&str, String> {
        if self.total_bytes > self.bytes.len() as u64 {
            return Err(format!(
                "the output is {} bytes long; at most {} can be parsed",
                self.total_bytes,
                Self::MAX_BYTES
            ));
        }
        let bytes = self
            .bytes
            .strip_prefix(b"\xEF\xBB\xBF")
            .unwrap_or(&self.bytes);
        str::from_utf8(bytes).map_err(|error| {
            format!(
                "the output is not valid UTF-8: invalid byte at offset {}",
                error.valid_up_to()
            )
        })
    }
}

/// A buffer beyond this gets all of its room at once.
const MAX_GROWN_BYTES: usize = 1 << 20;

/// Makes room for `more` bytes in a buffer that gets at most `max_bytes`. A long one gets all of its room at once, of which
/// only what is written takes memory: each step from one buffer to the next, larger one would hold both.
pub(crate) fn make_room(buffer: &mut Vec<u8>, more: usize, max_bytes: usize) {
    let needed = buffer.len() + more;
    if needed > buffer.capacity() && needed > MAX_GROWN_BYTES {
        buffer.reserve_exact(more.max(max_bytes.saturating_sub(buffer.len())));
    }
}

// Keeps the first and the last bytes of a stream, or its end alone.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn capture_text(pieces: &[&str], max_shown: u64, trim_newline: bool) -> (String, u64) {
        let limits = CaptureLimits {
            max_shown,
            max_saved: 0,
            save_dir: None,
            shows_lines: false,
            is_tail: false,
        };
        let mut capture = TextCapture::new(limits, Arc::default());
        for piece in pieces {
            capture.push(piece.as_bytes());
        }
        let (text, captured) = capture.finish(trim_newline);
        (text, captured.cut_bytes)
    }

    /// A trimmed newline doesn't count toward the limit.
    #[test]
    fn a_trimmed_final_newline_takes_no_room() {
        for (pieces, trim_newline, expected) in [
            (&["abcd\n"][..], true, ("abcd", 0)),
            (&["ab", "cd", "\n"], true, ("abcd", 0)),
            (&["abc\n", "\n"], true, ("abc\n", 0)),
            (&["\n"], true, ("", 0)),
            (&["abcd\n"], false, ("abd\n", 1)),
            (&["abc\n"], false, ("abc\n", 0)),
            (&["abcd\n", "\n"], true, ("abd\n", 1)),
            (&["abcd\n", "e"], true, ("ab\ne", 2)),
        ] {
            let (text, cut) = capture_text(pieces, 4, trim_newline);
            assert_eq!((&*text, cut), expected, "{pieces:?}");
        }
    }
}

#[cfg(test)]
mod window_tests {
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
