//! The table and the JSON of `toolq log list`: a row for each session.

use std::time::Duration;

use serde::Serialize;

use crate::log_view::session_view::format_time;
use crate::log_view::table::{left_aligned, render_rows, right_aligned, to_json};
use toolq_core::text::{escape, format_bytes, format_duration, truncate_to_columns};

/// Maximum width of the input's path, in columns.
const MAX_INPUT_COLUMNS: usize = 30;

/// What the log of a session says.
#[derive(Debug, Serialize)]
pub(crate) struct SessionRow {
    /// The end of its file's name, by which the verbs of `toolq log` find it.
    pub(crate) id: String,
    pub(crate) path: String,
    /// When it began, in milliseconds since 1970. `None` if the log can't be read.
    pub(crate) started_ms: Option<u64>,
    /// Where its first turn came from: a path, or `-` for stdin.
    pub(crate) input: Option<String>,
    pub(crate) runs: usize,
    pub(crate) calls: usize,
    /// Calls whose result is an error.
    pub(crate) errors: usize,
    pub(crate) state: SessionState,
    /// The time in which one of its runs was at work, in milliseconds.
    pub(crate) duration_ms: u64,
    /// Size of the log and of the files next to it, in bytes.
    pub(crate) bytes: u64,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionState {
    Finished,
    /// Its process is still at work.
    Running,
    /// Its process is gone and didn't end it.
    Killed,
    /// It has calls that may have had their effect.
    InDoubt,
    /// It can't be read to its end.
    Damaged,
}

impl SessionState {
    fn label(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Running => "running",
            Self::Killed => "killed",
            Self::InDoubt => "in doubt",
            Self::Damaged => "damaged",
        }
    }
}

/// Formats the rows as a table, without a trailing newline.
pub(crate) fn sessions_table(rows: &[SessionRow], color: bool) -> String {
    let cells = |cell: fn(&SessionRow) -> String| rows.iter().map(cell).collect::<Vec<String>>();
    let columns = [
        left_aligned("id", cells(|row| escape(&row.id).into_owned())),
        left_aligned(
            "started",
            cells(|row| row.started_ms.map_or_else(String::new, format_time)),
        ),
        left_aligned("state", cells(|row| row.state.label().to_owned())),
        right_aligned("calls", &cells(|row| row.calls.to_string())),
        right_aligned("errors", &cells(|row| row.errors.to_string())),
        right_aligned(
            "took",
            &cells(|row| format_duration(Duration::from_millis(row.duration_ms))),
        ),
        right_aligned("size", &cells(|row| format_bytes(row.bytes))),
        left_aligned("input", cells(input_cell)),
    ];
    render_rows(&columns, color)
}

/// Formats the rows as JSON, an object per line.
pub(crate) fn sessions_json(rows: &[SessionRow]) -> String {
    let lines: Vec<String> = rows.iter().map(to_json).collect();
    lines.join("\n")
}

fn input_cell(row: &SessionRow) -> String {
    match row.input.as_deref() {
        Some("-") => "(stdin)".to_owned(),
        Some(path) => truncate_to_columns(&escape(path), MAX_INPUT_COLUMNS).into_owned(),
        None => String::new(),
    }
}
