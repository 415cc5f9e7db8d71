//! The end of an output of which only the end is wanted.

use std::sync::Arc;

use crate::model::{Mask, MaskedStream};

use super::window::Window;

/// The last bytes of a stream, masked.
#[derive(Debug)]
pub(in crate::execute) struct Tail {
    masked: MaskedStream,
    window: Window,
}

impl Tail {
    /// Keeps the last `limit` bytes.
    pub(in crate::execute) fn new(limit: usize, mask: Arc<Mask>) -> Self {
        Self {
            masked: MaskedStream::new(mask),
            window: Window::tail(limit),
        }
    }

    /// Takes the next bytes.
    pub(in crate::execute) fn push(&mut self, bytes: &[u8]) {
        let Self { masked, window } = self;
        masked.push(bytes, |bytes| window.push(bytes));
    }

    /// The end as text, without one trailing line break.
    pub(in crate::execute) fn finish(mut self) -> String {
        let Self { masked, window } = &mut self;
        masked.finish(|bytes| window.push(bytes));
        let mut text = self.window.view().text;
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }
}
