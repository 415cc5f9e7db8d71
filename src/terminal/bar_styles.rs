//! What progress bars look like.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use indicatif::{ProgressState, ProgressStyle};
use parking_lot::Mutex;

use crate::output::{kind_style, with_ascii_symbols};
use toolq_core::text::{format_duration, paint};
use toolq_core::types::OutcomeKind;

/// Terminals with fewer columns get a shorter bar of all calls.
const NARROW_COLUMNS: usize = 60;

/// Columns of the gaps around the number of calls, and the last column, which stays empty.
const FOOTER_GAP_COLUMNS: usize = 4;

impl BarOptions {
    /// Returns the indentation of a row that is `depth` agents deep.
    pub(crate) fn tree_prefix(self, depth: usize) -> String {
        let branch = if self.is_unicode { "└ " } else { "> " };
        match depth {
            0 => String::new(),
            _ => "  ".repeat(depth - 1) + branch,
        }
    }

    pub(crate) fn total_bar_style(self, footer: &Arc<Footer>) -> ProgressStyle {
        let bar_columns = if self.columns() < NARROW_COLUMNS {
            10
        } else {
            24
        };
        let bar = self.cyan(&format!("{{bar:{bar_columns}}}"));
        let (footer, text) = (Arc::clone(footer), self.dim("{footer}"));
        let write_footer = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let count = format!("{}/{}", state.pos(), state.len().unwrap_or_default());
            let used = bar_columns + count.len() + FOOTER_GAP_COLUMNS;
            // Writing to a buffer can't fail.
            let _ = out.write_str(&footer.text(self.columns().saturating_sub(used)));
        };
        parse_style(&format!("{bar} {{pos}}/{{len}}  {text}"))
            .with_key("footer", write_footer)
            .progress_chars(if self.is_unicode { "━╸─" } else { "=>-" })
    }

    pub(crate) fn row_style(self) -> ProgressStyle {
        let spinner = self.cyan("{spinner}");
        let time = self.dim(&format!("{{took:>{TIME_COLUMNS}}}"));
        let style = parse_style(&format!("{spinner} {{wide_msg}} {time}"));
        // The elapsed whole seconds, or nothing during the first second.
        let write_time = |state: &ProgressState, out: &mut dyn fmt::Write| {
            let seconds = state.elapsed().as_secs();
            if seconds > 0 {
                // Writing to a buffer can't fail.
                let _ = out.write_str(&format_duration(Duration::from_secs(seconds)));
            }
        };
        let style = style.with_key("took", write_time);
        if self.is_unicode {
            style
        } else {
            style.tick_chars("|/-\\ ")
        }
    }
}

/// Parses a style template. The templates are constant, so the fallback for invalid ones isn't used.
fn parse_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

// The size and colors of the progress bars.

/// Bounds for the number of rows, whatever the terminal's height.
const MIN_ROWS: usize = 8;
const MAX_ROWS: usize = 16;

/// Bounds for the width of an input in a row.
const MIN_INPUT_COLUMNS: usize = 8;
const MAX_INPUT_COLUMNS: usize = 40;
/// Columns of a row that aren't text: the spinner, the time, and the gaps.
const ROW_OVERHEAD_COLUMNS: usize = 4 + TIME_COLUMNS;
/// Width of the time of a row.
const TIME_COLUMNS: usize = 7;

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

    /// Returns the width of the text of a row.
    pub(super) fn text_columns(self) -> usize {
        self.columns().saturating_sub(ROW_OVERHEAD_COLUMNS)
    }

    /// Returns the maximum width of an input in a row, which leaves room for its status.
    pub(super) fn input_columns(self) -> usize {
        (self.columns() / 4).clamp(MIN_INPUT_COLUMNS, MAX_INPUT_COLUMNS)
    }

    /// Returns a text of toolq with symbols that the terminal can show.
    pub(super) fn own_symbols(self, text: String) -> String {
        if self.is_unicode {
            text
        } else {
            with_ascii_symbols(&text)
        }
    }

    fn cyan(self, text: &str) -> String {
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

/// What is said about all calls.
#[derive(Default)]
pub(crate) struct Footer {
    /// Number of running calls without a bar.
    hidden_count: AtomicUsize,
    /// Numbers of calls that didn't succeed, by the words for that.
    failure_counts: Mutex<BTreeMap<OutcomeKind, usize>>,
    /// The size of the current batch, or nothing.
    batch_label: Mutex<String>,
}

impl Footer {
    /// Sets what is said about the current batch.
    pub(crate) fn set_batch_label(&self, label: String) {
        *self.batch_label.lock() = label;
    }

    /// Sets the number of running calls without a bar. Returns whether it has changed.
    pub(crate) fn set_hidden_count(&self, count: usize) -> bool {
        self.hidden_count.swap(count, Relaxed) != count
    }

    /// Counts a call that didn't succeed.
    pub(crate) fn count_failure(&self, kind: OutcomeKind) {
        *self.failure_counts.lock().entry(kind).or_default() += 1;
    }

    /// Formats how many calls didn't succeed: `2 failed, 1 rejected`.
    fn failures_text(&self) -> Option<String> {
        let counts = self.failure_counts.lock();
        let texts = counts
            .iter()
            .map(|(kind, count)| format!("{count} {}", kind.label()));
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    /// Returns as much as fits into `columns`: how many calls didn't succeed, the batch, and the number of hidden calls.
    pub(crate) fn text(&self, columns: usize) -> String {
        let label = self.batch_label.lock().clone();
        let failed = self.failures_text();
        let more = match self.hidden_count.load(Relaxed) {
            0 => None,
            count => Some(format!("{count} more")),
        };
        let label = Some(label).filter(|label| !label.is_empty());
        let join = |parts: &[&Option<String>]| {
            let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_deref()).collect();
            parts.join(", ")
        };
        let texts = [
            join(&[&failed, &label, &more]),
            join(&[&failed, &more]),
            join(&[&more]),
        ];
        let fitting = texts.into_iter().find(|text| text.len() <= columns);
        fitting.unwrap_or_default()
    }
}
