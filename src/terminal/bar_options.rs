use std::num::NonZeroUsize;

use toolq_core::text::paint;

/// Rows of calls, whatever the terminal's height.
const FEWEST: usize = 8;
const MOST: usize = 16;

/// How bars look.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Whether there may be colours.
    pub color: bool,
    /// Columns and lines of the terminal, which may change.
    pub size: fn() -> (u16, u16),
    /// Calls that run at once.
    pub jobs: NonZeroUsize,
}

impl Look {
    /// The width of the terminal.
    pub(super) fn columns(self) -> usize {
        usize::from((self.size)().0)
    }

    /// Calls that have a row: half of the terminal is left for what stands above.
    pub(super) fn rows(self) -> usize {
        usize::from((self.size)().1 / 2).clamp(FEWEST, MOST)
    }

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
