use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::model::{cut, format_duration};

use super::{Key, Look};

/// Calls that have a row; the others run unseen until one is free.
const ROWS: usize = 8;
/// Columns of a row that are not its text: the spinner, the time, and the gaps.
const BESIDE_TEXT: usize = 11;

/// A terminal with a row for each running call above a bar of all calls, for those who tick it or write beside it.
///
/// Nothing here moves by itself: whoever runs the calls ticks it, from one interval for all rows.
#[derive(Clone)]
pub struct Screen {
    terminal: MultiProgress,
    look: Look,
    all: ProgressBar,
    /// Running calls in the order of their start.
    running: Arc<Mutex<Vec<Row>>>,
}

/// A call that runs.
struct Row {
    key: Key,
    text: String,
    started: Instant,
    /// None where all rows are taken.
    bar: Option<ProgressBar>,
}

impl Screen {
    /// Draws on `target`.
    pub(super) fn new(target: ProgressDrawTarget, look: Look) -> Self {
        let terminal = MultiProgress::with_draw_target(target);
        let all = ProgressBar::new(0).with_style(look.style_of_all());
        Self {
            all: terminal.add(all),
            terminal,
            look,
            running: Arc::default(),
        }
    }

    /// Moves all rows on by one.
    pub fn tick(&self) {
        self.rows()
            .iter()
            .filter_map(|row| row.bar.as_ref())
            .for_each(ProgressBar::tick);
    }

    /// Takes the rows away while `write` writes to the same terminal.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.terminal.suspend(write)
    }

    /// The bar of all calls.
    pub(super) fn all(&self) -> &ProgressBar {
        &self.all
    }

    /// Writes a line that stays, above the rows.
    pub(super) fn line(&self, line: &str) {
        // What people see is no reason to stop.
        let _ = self.terminal.println(line);
    }

    /// Begins a row; a further attempt keeps the row of the first.
    pub(super) fn start(&self, key: Key, text: String) {
        let mut rows = self.rows();
        if rows.iter().any(|row| row.key == key) {
            return;
        }
        rows.push(Row {
            key,
            text,
            started: Instant::now(),
            bar: None,
        });
        self.fill(&mut rows);
    }

    pub(super) fn show(&self, key: &Key, text: String) {
        if let Some(row) = self.rows().iter_mut().find(|row| row.key == *key) {
            row.text = text;
            if let Some(bar) = &row.bar {
                bar.set_message(self.fitting(&row.text));
            }
        }
    }

    pub(super) fn end(&self, key: &Key) {
        let mut rows = self.rows();
        if let Some(index) = rows.iter().position(|row| row.key == *key) {
            self.take_away(rows.remove(index).bar);
            self.fill(&mut rows);
        }
    }

    /// Leaves the terminal as it was found, but for its lines that stay, also where calls still run.
    pub(super) fn clear(&self) {
        for row in self.rows().drain(..) {
            self.take_away(row.bar);
        }
        self.take_away(Some(self.all.clone()));
        // Whoever still ticks it draws nothing.
        self.terminal.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn take_away(&self, bar: Option<ProgressBar>) {
        if let Some(bar) = bar {
            bar.finish_and_clear();
            self.terminal.remove(&bar);
        }
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free rows to the calls that have run longest without one.
    fn fill(&self, rows: &mut [Row]) {
        let taken = rows.iter().filter(|row| row.bar.is_some()).count();
        let unseen = rows.iter_mut().filter(|row| row.bar.is_none());
        for row in unseen.take(ROWS.saturating_sub(taken)) {
            let bar = ProgressBar::new_spinner()
                .with_style(self.look.style_of_row())
                .with_elapsed(row.started.elapsed())
                .with_message(self.fitting(&row.text));
            row.bar = Some(self.terminal.insert_from_back(1, bar));
        }
    }

    /// The text as far as the row has room.
    fn fitting(&self, text: &str) -> String {
        let columns = (self.look.columns)().saturating_sub(BESIDE_TEXT);
        cut(text, columns).into_owned()
    }
}

impl Look {
    fn style_of_all(self) -> ProgressStyle {
        let bar = self.cyan("{bar:24}");
        style(&format!("{bar} {{pos}}/{{len}}  {{wide_msg}}")).progress_chars("━╸─")
    }

    fn style_of_row(self) -> ProgressStyle {
        let (spinner, time) = (self.cyan("{spinner}"), self.dim("{took:>7}"));
        style(&format!("{spinner} {{wide_msg}} {time}")).with_key("took", write_took)
    }
}

/// Whole seconds; nothing before the first is over.
fn write_took(state: &ProgressState, out: &mut dyn fmt::Write) {
    let seconds = state.elapsed().as_secs();
    if seconds > 0 {
        // Writing to a buffer cannot fail.
        let _ = out.write_str(&format_duration(Duration::from_secs(seconds)));
    }
}

/// A style by its template; a plain one where the template is wrong, which no release has.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}
