//! The part of the terminal that shows progress bars.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal::RowKey;
use crate::terminal::bar_options::BarOptions;
use toolq_core::text::{format_duration, truncate_to_columns};

/// Columns of a row that aren't text: the spinner, the time, and the gaps.
const ROW_OVERHEAD_COLUMNS: usize = 11;
/// Terminals with fewer columns get a shorter bar of all calls.
const NARROW_COLUMNS: usize = 60;
/// Columns of the gaps around the number of calls, and the last column, which stays empty.
const FOOTER_GAP_COLUMNS: usize = 4;

/// Rows of running calls above a bar of all calls. This is a cheap handle, shared with the code that ticks the bars and
/// with the code that prints to the same terminal.
///
/// Nothing moves on its own: one timer, owned by the command, ticks all rows.
#[derive(Clone)]
pub struct ProgressScreen {
    multi_progress: MultiProgress,
    options: BarOptions,
    total_bar: ProgressBar,
    /// What stands behind the bar of all calls.
    footer: Arc<Footer>,
    /// Running calls in start order, except that an agent's calls follow the agent.
    rows: Arc<Mutex<Vec<ProgressRow>>>,
}

/// What is said about all calls.
#[derive(Default)]
struct Footer {
    /// Number of running calls without a bar.
    hidden_count: AtomicUsize,
    /// The size of the current batch, or nothing.
    batch_label: Mutex<String>,
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
        self.lock_rows()
            .iter()
            .filter_map(|row| row.bar.as_ref())
            .for_each(ProgressBar::tick);
    }

    /// Hides the bars while `write` writes to the same terminal.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.multi_progress.suspend(write)
    }

    /// Returns the bar of all calls.
    pub(super) fn total_bar(&self) -> &ProgressBar {
        &self.total_bar
    }

    /// Sets what is said about the current batch.
    pub(super) fn set_batch_label(&self, label: String) {
        *self.footer.lock_batch_label() = label;
        self.total_bar.tick();
    }

    /// Prints a permanent line above the rows.
    pub(super) fn print_line(&self, line: &str) {
        // Failing to show progress is no reason to stop.
        let _ = self.multi_progress.println(line);
    }

    /// Adds a row, below that of the `parent` agent if there is one. Does nothing if the call already has a row from an
    /// earlier attempt.
    pub(super) fn add_row(&self, key: RowKey, parent: Option<&RowKey>, text: &str) {
        let mut rows = self.lock_rows();
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

    pub(super) fn set_text(&self, key: &RowKey, text: &str) {
        if let Some(row) = self.lock_rows().iter_mut().find(|row| row.key == *key) {
            row.text = self.options.tree_prefix(row.depth) + text;
            if let Some(bar) = &row.bar {
                bar.set_message(self.truncate_to_row(&row.text));
            }
        }
    }

    pub(super) fn remove_row(&self, key: &RowKey) {
        let mut rows = self.lock_rows();
        if let Some(index) = rows.iter().position(|row| row.key == *key) {
            self.remove_bar(rows.remove(index).bar);
            self.assign_free_bars(&mut rows);
        }
    }

    /// Removes all bars, even if calls are still running. Printed lines stay.
    pub(super) fn clear(&self) {
        for row in self.lock_rows().drain(..) {
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

    fn lock_rows(&self) -> MutexGuard<'_, Vec<ProgressRow>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
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
                .with_message(self.truncate_to_row(&row.text));
            let bar_before = before.iter().rev().find_map(|row| row.bar.as_ref());
            let bar_after = after.iter().find_map(|row| row.bar.as_ref());
            row.bar = Some(match (bar_before, bar_after) {
                (Some(bar_before), _) => self.multi_progress.insert_after(bar_before, bar),
                (None, Some(bar_after)) => self.multi_progress.insert_before(bar_after, bar),
                (None, None) => self.multi_progress.insert_from_back(1, bar),
            });
        }
        let hidden = hidden - free;
        if self.footer.hidden_count.swap(hidden, Relaxed) != hidden {
            self.total_bar.tick();
        }
    }

    /// Truncates the text to the width of a row.
    fn truncate_to_row(&self, text: &str) -> String {
        let columns = self.options.columns().saturating_sub(ROW_OVERHEAD_COLUMNS);
        let text = truncate_to_columns(text, columns);
        if self.options.is_unicode {
            text.into_owned()
        } else {
            text.replace('…', "~")
        }
    }
}

impl Footer {
    fn lock_batch_label(&self) -> MutexGuard<'_, String> {
        let label = self.batch_label.lock();
        label.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns as much as fits into `columns`: the batch and the number of hidden calls, only that number, or nothing.
    fn text(&self, columns: usize) -> String {
        let label = self.lock_batch_label().clone();
        let more = match self.hidden_count.load(Relaxed) {
            0 => None,
            hidden => Some(format!("{hidden} more")),
        };
        let label = Some(label).filter(|label| !label.is_empty());
        let parts: Vec<String> = label.into_iter().chain(more.clone()).collect();
        let texts = [Some(parts.join(", ")), more];
        let fitting = texts
            .into_iter()
            .flatten()
            .find(|text| text.len() <= columns);
        fitting.unwrap_or_default()
    }
}

impl BarOptions {
    /// Returns the indentation of a row that is `depth` agents deep.
    fn tree_prefix(self, depth: usize) -> String {
        let branch = if self.is_unicode { "└ " } else { "`-" };
        match depth {
            0 => String::new(),
            _ => "  ".repeat(depth - 1) + branch,
        }
    }

    fn total_bar_style(self, footer: &Arc<Footer>) -> ProgressStyle {
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

    fn row_style(self) -> ProgressStyle {
        let (spinner, time) = (self.cyan("{spinner}"), self.dim("{took:>7}"));
        let style = parse_style(&format!("{spinner} {{wide_msg}} {time}"));
        let style = style.with_key("took", write_elapsed);
        if self.is_unicode {
            style
        } else {
            style.tick_chars("|/-\\ ")
        }
    }
}

/// Writes the elapsed whole seconds, or nothing during the first second.
fn write_elapsed(state: &ProgressState, out: &mut dyn fmt::Write) {
    let seconds = state.elapsed().as_secs();
    if seconds > 0 {
        // Writing to a buffer can't fail.
        let _ = out.write_str(&format_duration(Duration::from_secs(seconds)));
    }
}

/// Parses a style template. The templates are constant, so the fallback for invalid ones isn't used.
fn parse_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What doesn't fit is left out, instead of being cut in the middle.
    #[test]
    fn a_narrow_footer_says_less() {
        let footer = Footer::default();
        assert_eq!(footer.text(100), "");
        *footer.lock_batch_label() = "40 calls, 10 at a time".to_owned();
        assert_eq!(footer.text(100), "40 calls, 10 at a time");
        assert_eq!(footer.text(20), "");
        footer.hidden_count.store(22, Relaxed);
        assert_eq!(footer.text(31), "40 calls, 10 at a time, 22 more");
        assert_eq!(footer.text(30), "22 more");
        assert_eq!(footer.text(6), "");
    }
}
