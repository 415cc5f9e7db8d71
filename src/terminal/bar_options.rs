//! The size and colors of the progress bars.

use std::num::NonZeroUsize;

use toolq_core::text::paint;

/// Bounds for the number of rows, whatever the terminal's height.
const MIN_ROWS: usize = 8;
const MAX_ROWS: usize = 16;

/// How progress bars look.
#[derive(Debug, Clone, Copy)]
pub struct BarOptions {
    /// Whether to use colors.
    pub color: bool,
    /// Whether the terminal shows characters beyond ASCII.
    pub is_unicode: bool,
    /// Returns the terminal's current columns and lines.
    pub terminal_size: fn() -> (u16, u16),
    /// Maximum number of calls that run at once.
    pub jobs: NonZeroUsize,
}

impl BarOptions {
    /// Returns the width of the terminal.
    pub(super) fn columns(self) -> usize {
        usize::from((self.terminal_size)().0)
    }

    /// Returns the maximum number of calls with a row. Half of the terminal is left for the output above.
    pub(super) fn max_rows(self) -> usize {
        usize::from((self.terminal_size)().1 / 2).clamp(MIN_ROWS, MAX_ROWS)
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
