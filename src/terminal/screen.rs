use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal::Key;
use crate::terminal::bar_options::Look;
use toolq_core::text::{cut, format_duration};

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
    /// Calls that run and have no row.
    unseen: Arc<AtomicUsize>,
    /// Running calls in the order of their start, those of an agent below it.
    running: Arc<Mutex<Vec<Row>>>,
}

/// A call that runs.
struct Row {
    key: Key,
    /// Agents that it stands below.
    depth: usize,
    text: String,
    started: Instant,
    /// None where all rows are taken.
    bar: Option<ProgressBar>,
}

impl Screen {
    /// Draws on `target`.
    pub(super) fn new(target: ProgressDrawTarget, look: Look) -> Self {
        let terminal = MultiProgress::with_draw_target(target);
        let unseen = Arc::default();
        let all = ProgressBar::new(0).with_style(look.style_of_all(&unseen));
        Self {
            unseen,
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

    /// Begins a row, below that of the `agent` whose call it is; a further attempt keeps the row of the first.
    pub(super) fn start(&self, key: Key, agent: Option<&Key>, text: &str) {
        let mut rows = self.rows();
        if rows.iter().any(|row| row.key == key) {
            return;
        }
        let above = agent.and_then(|agent| rows.iter().position(|row| row.key == *agent));
        let (depth, place) = match above {
            Some(above) => {
                let depth = rows[above].depth + 1;
                let below = rows[above + 1..].iter();
                let more = below.take_while(|row| row.depth >= depth).count();
                (depth, above + 1 + more)
            }
            None => (0, rows.len()),
        };
        let row = Row {
            key,
            depth,
            text: branch(depth) + text,
            started: Instant::now(),
            bar: None,
        };
        rows.insert(place, row);
        self.fill(&mut rows);
    }

    pub(super) fn show(&self, key: &Key, text: &str) {
        if let Some(row) = self.rows().iter_mut().find(|row| row.key == *key) {
            row.text = branch(row.depth) + text;
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

    /// Gives free rows to the first calls that have none: those that have run longest, with the agents that wait for them.
    fn fill(&self, rows: &mut [Row]) {
        let seen = rows.iter().filter(|row| row.bar.is_some()).count();
        let unseen = rows.len() - seen;
        let free = self.look.rows().saturating_sub(seen).min(unseen);
        let without = (0..rows.len()).filter(|index| rows[*index].bar.is_none());
        for index in without.take(free).collect::<Vec<_>>() {
            let (before, behind) = rows.split_at_mut(index);
            let Some((row, behind)) = behind.split_first_mut() else {
                return;
            };
            let bar = ProgressBar::new_spinner()
                .with_style(self.look.style_of_row())
                .with_elapsed(row.started.elapsed())
                .with_message(self.fitting(&row.text));
            let above = before.iter().rev().find_map(|row| row.bar.as_ref());
            let below = behind.iter().find_map(|row| row.bar.as_ref());
            row.bar = Some(match (above, below) {
                (Some(above), _) => self.terminal.insert_after(above, bar),
                (None, Some(below)) => self.terminal.insert_before(below, bar),
                (None, None) => self.terminal.insert_from_back(1, bar),
            });
        }
        let unseen = unseen - free;
        if self.unseen.swap(unseen, Relaxed) != unseen {
            self.all.tick();
        }
    }

    /// The text as far as the row has room.
    fn fitting(&self, text: &str) -> String {
        let columns = self.look.columns().saturating_sub(BESIDE_TEXT);
        cut(text, columns).into_owned()
    }
}

/// What stands before the text of a row: how deep it is below agents.
fn branch(depth: usize) -> String {
    match depth {
        0 => String::new(),
        _ => "  ".repeat(depth - 1) + "└ ",
    }
}

impl Look {
    fn style_of_all(self, unseen: &Arc<AtomicUsize>) -> ProgressStyle {
        let bar = self.cyan("{bar:24}");
        let (unseen, more) = (Arc::clone(unseen), self.dim("{more}"));
        style(&format!("{bar} {{pos}}/{{len}}  {{wide_msg}} {more}"))
            .with_key(
                "more",
                move |_: &ProgressState, out: &mut dyn fmt::Write| {
                    let unseen = unseen.load(Relaxed);
                    if unseen > 0 {
                        let _ = write!(out, "{unseen} more");
                    }
                },
            )
            .progress_chars("━╸─")
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
