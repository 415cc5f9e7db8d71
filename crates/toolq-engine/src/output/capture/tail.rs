//! Captures the end of an output.

use std::sync::Arc;

use crate::output::capture::window::HeadTailWindow;
use crate::run_budget::OutputCounter;
use redact::{Mask, MaskedStream};

/// The last bytes of a stream, masked.
#[derive(Debug)]
pub(crate) struct TailCapture {
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
            masked: MaskedStream::new(mask),
            window: HeadTailWindow::tail(limit),
        }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Self {
            masked,
            window,
            counter,
        } = self;
        counter.add(bytes.len());
        masked.push(bytes, |bytes| window.push(bytes));
    }

    /// Returns the end of the output as text, without one trailing newline.
    pub(crate) fn finish(mut self) -> String {
        let Self { masked, window, .. } = &mut self;
        masked.finish(|bytes| window.push(bytes));
        let mut text = self.window.into_text().text;
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }
}
