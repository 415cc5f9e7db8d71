//! Captures an output. If it is text: masks it, keeps its head and tail, and saves the whole to a file if it is cut.

use std::path::PathBuf;
use std::sync::Arc;

use crate::output::capture::saved_file::SavedFile;
use crate::output::capture::shown_lines::ShownLines;
use crate::output::capture::window::HeadTailWindow;
use redact::{Mask, MaskedStream};
use toolq_core::types::{CaptureStats, Tool};

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
}

impl CaptureLimits {
    pub(crate) fn new(tool: &Tool, outputs: Option<&PathBuf>) -> Self {
        Self {
            max_shown: tool.max_output,
            max_saved: tool.max_saved,
            save_dir: outputs.cloned(),
            shows_lines: false,
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
        Self {
            total_bytes: 0,
            masked: MaskedStream::new(Arc::clone(&mask)),
            mask,
            retained: RetainedText {
                window: HeadTailWindow::new(max_shown),
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
        let room = (Self::MAX_BYTES - self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn capture_text(pieces: &[&str], max_shown: u64, trim_newline: bool) -> (String, u64) {
        let limits = CaptureLimits {
            max_shown,
            max_saved: 0,
            save_dir: None,
            shows_lines: false,
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
