//! The end of an output of which only the end is wanted.

use std::sync::Arc;

use crate::output::capture::window::Window;
use redact::{Mask, MaskedStream};

/// The last bytes of a stream, masked.
#[derive(Debug)]
pub(crate) struct Tail {
    masked: MaskedStream,
    window: Window,
}

impl Tail {
    /// Keeps the last `limit` bytes.
    pub(crate) fn new(limit: usize, mask: Arc<Mask>) -> Self {
        Self {
            masked: MaskedStream::new(mask),
            window: Window::tail(limit),
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Self { masked, window } = self;
        masked.push(bytes, |bytes| window.push(bytes));
    }

    /// The end as text, without one trailing line break.
    pub(crate) fn finish(mut self) -> String {
        let Self { masked, window } = &mut self;
        masked.finish(|bytes| window.push(bytes));
        let mut text = self.window.view().text;
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }
}
