//! Captures the end of an output.

use std::sync::Arc;

use crate::output::capture::shown_lines::ShownLines;
use crate::output::capture::window::HeadTailWindow;
use crate::run_budget::OutputCounter;
use redact::{Mask, MaskedStream};

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
