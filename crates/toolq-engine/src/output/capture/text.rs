//! Captures an output that is text: masks it, keeps its head and tail, and saves the whole to a file if it is cut.

use std::path::PathBuf;
use std::sync::Arc;

use crate::output::capture::saved_file::SavedFile;
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
}

impl CaptureLimits {
    pub(crate) fn new(tool: &Tool, outputs: Option<&PathBuf>) -> Self {
        Self {
            max_shown: tool.max_output,
            max_saved: tool.max_saved,
            save_dir: outputs.cloned(),
        }
    }
}

/// A text that is still arriving.
#[derive(Debug)]
pub(crate) struct TextCapture {
    total_bytes: u64,
    masked: MaskedStream,
    retained: RetainedText,
}

#[derive(Debug)]
struct RetainedText {
    window: HeadTailWindow,
    limits: CaptureLimits,
    file: Option<SavedFile>,
    /// The last byte was a newline. It may have to be trimmed, so it is held back until more bytes follow it.
    pending_newline: bool,
}

impl TextCapture {
    pub(crate) fn new(limits: CaptureLimits, mask: Arc<Mask>) -> Self {
        let max_shown = usize::try_from(limits.max_shown).unwrap_or(usize::MAX);
        Self {
            total_bytes: 0,
            masked: MaskedStream::new(mask),
            retained: RetainedText {
                window: HeadTailWindow::new(max_shown),
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
        let window_text = self.retained.window.into_text();
        let text = window_text.text;
        let stats = CaptureStats {
            total_bytes: self.total_bytes,
            cut_bytes: window_text.cut,
            cut_offset: window_text.cut_at,
            // If the file couldn't be written, nothing was saved, and the text says so.
            saved_path: (self.retained.file)
                .and_then(|file| file.persist().ok())
                .map(Box::new),
            attachments: Box::default(),
            lossy: window_text.lossy,
            killed_leftovers: 0,
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
        if !std::mem::take(&mut self.pending_newline) {
            return;
        }
        if !trim_newline {
            return self.append(b"\n");
        }
        if let Some(file) = &mut self.file
            && file.push(b"\n").is_err()
        {
            self.file = None;
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let was_complete = self.window.is_complete();
        if was_complete && bytes.len() as u64 > self.window_room() {
            self.open_file();
        }
        if let Some(file) = &mut self.file
            && file.push(bytes).is_err()
        {
            self.file = None;
        }
        self.window.push(bytes);
    }

    /// Returns how many more bytes the window can keep without a cut.
    fn window_room(&self) -> u64 {
        let kept: usize = self.window.parts().iter().map(|part| part.len()).sum();
        self.limits.max_shown.saturating_sub(kept as u64)
    }

    /// Creates the file, starting with everything that is in the window.
    fn open_file(&mut self) {
        let Some(dir) = self
            .limits
            .save_dir
            .as_ref()
            .filter(|_| self.limits.max_saved > 0)
        else {
            return;
        };
        let opened = SavedFile::create(dir, self.limits.max_saved).and_then(|mut file| {
            self.window
                .parts()
                .iter()
                .try_for_each(|part| file.push(part))?;
            Ok(file)
        });
        self.file = opened.ok();
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
