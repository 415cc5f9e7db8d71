use std::num::NonZeroUsize;

use crate::model::paint;

/// How bars look.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Whether there may be colours.
    pub color: bool,
    /// The width of the terminal, which may change.
    pub columns: fn() -> usize,
    /// Calls that run at once.
    pub jobs: NonZeroUsize,
}

impl Look {
    pub(super) fn cyan(self, text: &str) -> String {
        self.paint(text, "36")
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint(text, "2")
    }

    pub(super) fn red(self, text: &str) -> String {
        self.paint(text, "31")
    }

    fn paint(self, text: &str, style: &str) -> String {
        paint(text, style, self.color)
    }
}
