//! The size and colors of the progress bars.

use std::num::NonZeroUsize;

use crate::output::with_ascii_symbols;
use crate::terminal::kind_style;
use toolq_core::text::paint;
use toolq_core::types::OutcomeKind;

/// Bounds for the number of rows, whatever the terminal's height.
const MIN_ROWS: usize = 8;
const MAX_ROWS: usize = 16;

/// Bounds for the width of an input in a row.
const MIN_INPUT_COLUMNS: usize = 8;
const MAX_INPUT_COLUMNS: usize = 40;
/// Columns of a row that aren't text: the spinner, the time, and the gaps.
const ROW_OVERHEAD_COLUMNS: usize = 4 + TIME_COLUMNS;
/// Width of the time of a row, with what the gauge beside it is a part of, if it has one: `12s of at most 30s`.
pub(super) const TIME_COLUMNS: usize = 7;
pub(super) const GAUGE_LABEL_COLUMNS: usize = 18;
/// Width of the gauge of a row, and of the narrowest terminal that has one.
pub(super) const GAUGE_COLUMNS: usize = 10;
const MIN_GAUGE_TERMINAL: usize = 70;

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

    /// Returns the width of the text of a row, which may have a gauge.
    pub(super) fn text_columns(self, has_gauge: bool) -> usize {
        let gauge = if has_gauge { self.gauge_columns() } else { 0 };
        self.columns().saturating_sub(ROW_OVERHEAD_COLUMNS + gauge)
    }

    /// Returns the maximum width of an input in a row, which leaves room for its status.
    pub(super) fn input_columns(self) -> usize {
        (self.columns() / 4).clamp(MIN_INPUT_COLUMNS, MAX_INPUT_COLUMNS)
    }

    /// Returns how much wider the gauge of a row makes it, with its gap and its label. A narrow terminal has no room for one.
    pub(super) fn gauge_columns(self) -> usize {
        if self.columns() < MIN_GAUGE_TERMINAL {
            0
        } else {
            1 + GAUGE_COLUMNS + GAUGE_LABEL_COLUMNS - TIME_COLUMNS
        }
    }

    /// Returns a text of toolq with symbols that the terminal can show.
    pub(super) fn own_symbols(self, text: String) -> String {
        if self.is_unicode {
            text
        } else {
            with_ascii_symbols(&text)
        }
    }

    pub(super) fn cyan(self, text: &str) -> String {
        self.paint(text, "36")
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint(text, "2")
    }

    /// Returns the word for how a call ended, in the color of what it means.
    pub(super) fn kind_label(self, kind: OutcomeKind) -> String {
        self.paint(kind.label(), kind_style(kind))
    }

    fn paint(self, text: &str, style: &str) -> String {
        paint(text, style, self.color)
    }
}
