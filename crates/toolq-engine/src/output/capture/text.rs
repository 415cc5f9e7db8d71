//! An output that is text: masked, its head and tail kept, the whole in a file once it is more.

use std::path::PathBuf;
use std::sync::Arc;

use crate::output::capture::saved_file::WholeFile;
use crate::output::capture::window::Window;
use redact::{Mask, MaskedStream};
use toolq_core::types::{Captured, Tool};

/// How much of an output is kept, and where.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Bytes for the model.
    pub(crate) shown: u64,
    /// Bytes in a file.
    pub(crate) saved: u64,
    /// The folder of such files; none keeps none.
    pub(crate) outputs: Option<PathBuf>,
}

impl Limits {
    pub(crate) fn new(tool: &Tool, outputs: Option<&PathBuf>) -> Self {
        Self {
            shown: tool.max_output,
            saved: tool.max_saved,
            outputs: outputs.cloned(),
        }
    }
}

/// A text that is still coming.
#[derive(Debug)]
pub(crate) struct TextCapture {
    bytes: u64,
    masked: MaskedStream,
    kept: Kept,
}

#[derive(Debug)]
struct Kept {
    window: Window,
    limits: Limits,
    whole: Option<WholeFile>,
    /// A line break came last. It may be none of the text's, so that it is passed on with what comes behind it.
    newline: bool,
}

impl TextCapture {
    pub(crate) fn new(limits: Limits, mask: Arc<Mask>) -> Self {
        let shown = usize::try_from(limits.shown).unwrap_or(usize::MAX);
        Self {
            bytes: 0,
            masked: MaskedStream::new(mask),
            kept: Kept {
                window: Window::new(shown),
                limits,
                whole: None,
                newline: false,
            },
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let Self { masked, kept, .. } = self;
        masked.push(bytes, |bytes| kept.push(bytes));
    }

    /// The text, without one trailing line break where `trim` says so, and what was done to it.
    pub(crate) fn finish(mut self, trim: bool) -> (String, Captured) {
        let Self { masked, kept, .. } = &mut self;
        masked.finish(|bytes| kept.push(bytes));
        kept.finish(trim);
        let view = self.kept.window.view();
        let text = view.text;
        let captured = Captured {
            bytes: self.bytes,
            cut: view.cut,
            cut_at: view.cut_at,
            // A file that could not be written is as if none were kept, and the text says so.
            saved: self.kept.whole.and_then(|whole| whole.keep().ok()),
            lossy: view.lossy,
            leftovers: 0,
        };
        (text, captured)
    }
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.newline) {
            self.take(b"\n");
        }
        let text = bytes.strip_suffix(b"\n");
        self.newline = text.is_some();
        self.take(text.unwrap_or(bytes));
    }

    /// A line break at the very end is a part of the whole, but of the text only where it is not trimmed.
    fn finish(&mut self, trim: bool) {
        if !std::mem::take(&mut self.newline) {
            return;
        }
        if !trim {
            return self.take(b"\n");
        }
        if let Some(whole) = &mut self.whole
            && whole.push(b"\n").is_err()
        {
            self.whole = None;
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let was_whole = self.window.is_whole();
        if was_whole && bytes.len() as u64 > self.room() {
            self.open();
        }
        if let Some(whole) = &mut self.whole
            && whole.push(bytes).is_err()
        {
            self.whole = None;
        }
        self.window.push(bytes);
    }

    /// How many bytes more the window can keep without a cut.
    fn room(&self) -> u64 {
        let kept: usize = self.window.parts().iter().map(|part| part.len()).sum();
        self.limits.shown.saturating_sub(kept as u64)
    }

    /// Begins the file with all that the window still holds.
    fn open(&mut self) {
        let Some(dir) = self
            .limits
            .outputs
            .as_ref()
            .filter(|_| self.limits.saved > 0)
        else {
            return;
        };
        let opened = WholeFile::create(dir, self.limits.saved).and_then(|mut whole| {
            self.window
                .parts()
                .iter()
                .try_for_each(|part| whole.push(part))?;
            Ok(whole)
        });
        self.whole = opened.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pieces: &[&str], shown: u64, trim: bool) -> (String, u64) {
        let limits = Limits {
            shown,
            saved: 0,
            outputs: None,
        };
        let mut capture = TextCapture::new(limits, Arc::default());
        for piece in pieces {
            capture.push(piece.as_bytes());
        }
        let (text, captured) = capture.finish(trim);
        (text, captured.cut)
    }

    /// FAULTS 75: a line break that is taken off takes no place.
    #[test]
    fn the_last_line_break_is_no_part_of_a_text() {
        for (pieces, trim, expected) in [
            (&["abcd\n"][..], true, ("abcd", 0)),
            (&["ab", "cd", "\n"], true, ("abcd", 0)),
            (&["abc\n", "\n"], true, ("abc\n", 0)),
            (&["\n"], true, ("", 0)),
            (&["abcd\n"], false, ("abd\n", 1)),
            (&["abc\n"], false, ("abc\n", 0)),
            (&["abcd\n", "\n"], true, ("abd\n", 1)),
            (&["abcd\n", "e"], true, ("ab\ne", 2)),
        ] {
            let (text, cut) = captured(pieces, 4, trim);
            assert_eq!((&*text, cut), expected, "{pieces:?}");
        }
    }
}
