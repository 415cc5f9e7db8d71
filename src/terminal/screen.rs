//! The part of the terminal that shows progress bars.

use std::sync::Arc;
use std::time::Instant;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use parking_lot::Mutex;

use crate::output::StderrTerminal;
use crate::terminal::bar_styles::{BarOptions, Footer};
use crate::terminal::call_caption::RowKey;
use toolq_core::text::truncate_to_columns;
use toolq_core::types::OutcomeKind;

/// Rows of running calls above a bar of all calls. This is a cheap handle, shared with the code that ticks the bars and
/// with the code that prints to the same terminal.
///
/// Nothing moves on its own: one timer, owned by the command, ticks all rows.
#[derive(Clone)]
pub struct ProgressScreen {
    multi_progress: MultiProgress,
    options: BarOptions,
    total_bar: ProgressBar,
    /// The text after the bar of all calls.
    footer: Arc<Footer>,
    /// Running calls in start order, except that an agent's calls follow the agent.
    rows: Arc<Mutex<Vec<ProgressRow>>>,
}

/// A running call.
struct ProgressRow {
    key: RowKey,
    /// Number of parent agents.
    depth: usize,
    text: String,
    started_at: Instant,
    /// `None` if the screen had no room for it.
    bar: Option<ProgressBar>,
}

impl ProgressScreen {
    /// Creates a screen that is drawn on `target`.
    pub(super) fn new(target: ProgressDrawTarget, options: BarOptions) -> Self {
        let multi_progress = MultiProgress::with_draw_target(target);
        let footer = Arc::default();
        let total_bar = ProgressBar::new(0).with_style(options.total_bar_style(&footer));
        Self {
            footer,
            total_bar: multi_progress.add(total_bar),
            multi_progress,
            options,
            rows: Arc::default(),
        }
    }

    /// Advances the spinners of all rows.
    pub fn tick(&self) {
        self.rows
            .lock()
            .iter()
            .filter_map(|row| row.bar.as_ref())
            .for_each(ProgressBar::tick);
    }

    /// Hides the bars while `write` writes to the same terminal.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.multi_progress.suspend(write)
    }

    /// Removes the bars until [`show`](Self::show), for a question on the same terminal. Unlike [`suspend`](Self::suspend), this
    /// doesn't hold up calls that report their progress.
    pub fn hide(&self) {
        let _ = self.multi_progress.clear();
        self.multi_progress
            .set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Draws the bars again.
    pub fn show(&self) {
        let terminal = ProgressDrawTarget::term_like_with_hz(
            Box::new(StderrTerminal::default()),
            MAX_FRAMES_PER_SECOND,
        );
        self.multi_progress.set_draw_target(terminal);
        self.tick();
    }

    /// Returns the bar of all calls.
    pub(super) fn total_bar(&self) -> &ProgressBar {
        &self.total_bar
    }

    /// Sets what is said about the current batch.
    pub(super) fn set_batch_label(&self, label: String) {
        self.footer.set_batch_label(label);
        self.total_bar.tick();
    }

    /// Counts a call that failed.
    pub(super) fn count_failure(&self, kind: OutcomeKind) {
        self.footer.count_failure(kind);
        self.total_bar.tick();
    }

    /// Prints a permanent line above the rows.
    pub(super) fn print_line(&self, line: &str) {
        // Failing to show progress is no reason to stop.
        let _ = self
            .multi_progress
            .println(self.options.own_symbols(line.to_owned()));
    }

    /// Adds a row, below that of the `parent` agent if there is one. Does nothing if the call already has a row from an
    /// earlier attempt.
    pub(super) fn add_row(&self, key: RowKey, parent: Option<&RowKey>, text: &str) {
        let mut rows = self.rows.lock();
        if rows.iter().any(|row| row.key == key) {
            return;
        }
        let parent_index = parent.and_then(|parent| rows.iter().position(|row| row.key == *parent));
        let (depth, index) = match parent_index {
            Some(parent_index) => {
                let depth = rows[parent_index].depth + 1;
                let rows_after = rows[parent_index + 1..].iter();
                let descendant_count = rows_after.take_while(|row| row.depth >= depth).count();
                (depth, parent_index + 1 + descendant_count)
            }
            None => (0, rows.len()),
        };
        let row = ProgressRow {
            key,
            depth,
            text: self.options.tree_prefix(depth) + text,
            started_at: Instant::now(),
            bar: None,
        };
        rows.insert(index, row);
        self.assign_free_bars(&mut rows);
    }

    pub(super) fn has_row(&self, key: &RowKey) -> bool {
        self.rows.lock().iter().any(|row| row.key == *key)
    }

    pub(super) fn set_text(&self, key: &RowKey, text: &str) {
        if let Some(row) = self.rows.lock().iter_mut().find(|row| row.key == *key) {
            row.text = self.options.tree_prefix(row.depth) + text;
            if let Some(bar) = &row.bar {
                bar.set_message(self.truncate_to_row(row));
            }
        }
    }

    pub(super) fn remove_row(&self, key: &RowKey) {
        let mut rows = self.rows.lock();
        if let Some(index) = rows.iter().position(|row| row.key == *key) {
            self.remove_bar(rows.remove(index).bar);
            self.assign_free_bars(&mut rows);
        }
    }

    /// Removes all bars, even if calls are still running. Printed lines stay.
    pub(super) fn clear(&self) {
        for row in self.rows.lock().drain(..) {
            self.remove_bar(row.bar);
        }
        self.remove_bar(Some(self.total_bar.clone()));
        // Later ticks must not draw anything.
        self.multi_progress
            .set_draw_target(ProgressDrawTarget::hidden());
    }

    fn remove_bar(&self, bar: Option<ProgressBar>) {
        if let Some(bar) = bar {
            bar.finish_and_clear();
            self.multi_progress.remove(&bar);
        }
    }

    /// Assigns free bars to the first rows without one. Those come first that have run longest, and agents come before
    /// their calls.
    fn assign_free_bars(&self, rows: &mut [ProgressRow]) {
        let shown = rows.iter().filter(|row| row.bar.is_some()).count();
        let hidden = rows.len() - shown;
        let free = self.options.max_rows().saturating_sub(shown).min(hidden);
        let hidden_rows = (0..rows.len()).filter(|index| rows[*index].bar.is_none());
        for index in hidden_rows.take(free).collect::<Vec<_>>() {
            let (before, after) = rows.split_at_mut(index);
            let Some((row, after)) = after.split_first_mut() else {
                return;
            };
            let bar = ProgressBar::new_spinner()
                .with_style(self.options.row_style())
                .with_elapsed(row.started_at.elapsed())
                .with_message(self.truncate_to_row(row));
            let bar_before = before.iter().rev().find_map(|row| row.bar.as_ref());
            let bar_after = after.iter().find_map(|row| row.bar.as_ref());
            row.bar = Some(match (bar_before, bar_after) {
                (Some(bar_before), _) => self.multi_progress.insert_after(bar_before, bar),
                (None, Some(bar_after)) => self.multi_progress.insert_before(bar_after, bar),
                (None, None) => self.multi_progress.insert_from_back(1, bar),
            });
        }
        let hidden = hidden - free;
        if self.footer.set_hidden_count(hidden) {
            self.total_bar.tick();
        }
    }

    /// Truncates the text to the width of a row.
    fn truncate_to_row(&self, row: &ProgressRow) -> String {
        let columns = self.options.text_columns();
        let text = truncate_to_columns(&row.text, columns);
        self.options.own_symbols(text.into_owned())
    }
}

// The text after the bar of all calls.

/// Maximum frame rate of the progress bars.
pub const MAX_FRAMES_PER_SECOND: u8 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// What doesn't fit is left out, instead of being cut in the middle.
    #[test]
    fn a_narrow_footer_says_less() {
        let footer = Footer::default();
        assert_eq!(footer.text(100), "");
        footer.set_batch_label("40 calls, 10 at a time".to_owned());
        assert_eq!(footer.text(100), "40 calls, 10 at a time");
        assert_eq!(footer.text(20), "");
        assert!(footer.set_hidden_count(22));
        assert!(!footer.set_hidden_count(22));
        assert_eq!(footer.text(31), "40 calls, 10 at a time, 22 more");
        assert_eq!(footer.text(30), "22 more");
        assert_eq!(footer.text(6), "");
        footer.count_failure(OutcomeKind::Failed);
        assert_eq!(footer.text(41), "1 failed, 40 calls, 10 at a time, 22 more");
        assert_eq!(footer.text(30), "1 failed, 22 more");
        for kind in [OutcomeKind::Rejected, OutcomeKind::Rejected] {
            footer.count_failure(kind);
        }
        assert_eq!(footer.text(30), "1 failed, 2 rejected, 22 more");
    }
}
