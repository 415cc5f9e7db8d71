//! The table and the JSON of `toolq log list`: a row for each session.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::log_view::table::{left_aligned, render_rows, right_aligned};
use crate::terminal::{OutcomeTally, calls_label};
use toolq_core::json::expect_json;
use toolq_core::text::{escape, format_bytes, format_duration, format_time, truncate_to_columns};
use toolq_log::records::{SessionEndRecord, SessionRecord, TurnRecord};

/// Maximum width of the input's path, in columns.
const MAX_INPUT_COLUMNS: usize = 30;

/// Columns of a terminal that are kept for the beginning of the input's path.
const MIN_INPUT_COLUMNS: usize = 9;
/// The number of columns that even a narrow table has before the input: id, start, state and errors.
const KEPT_COLUMNS: usize = 4;

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
    /// Those of the calls that agents made.
    pub(crate) agent_calls: usize,
    /// Calls whose result is an error.
    pub(crate) errors: usize,
    pub(crate) state: SessionState,
    /// The time in which one of its runs was at work, in milliseconds.
    pub(crate) duration_ms: u64,
    /// Size of the log and of the files next to it, in bytes.
    pub(crate) bytes: u64,
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionState {
    Finished,
    /// It ended, but a call waits for an approval.
    Waiting,
    /// It ended before all calls could run.
    Incomplete,
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
            Self::Waiting => "waiting",
            Self::Incomplete => "incomplete",
            Self::Running => "running",
            Self::Killed => "killed",
            Self::InDoubt => "in doubt",
            Self::Damaged => "damaged",
        }
    }
}

/// Formats the rows as a table, without a trailing newline. On a terminal of `width` columns, the input is cut, and what does
/// without it best is left out.
pub(crate) fn sessions_table(rows: &[SessionRow], width: Option<usize>, color: bool) -> String {
    let cells = |cell: fn(&SessionRow) -> String| rows.iter().map(cell).collect::<Vec<String>>();
    let mut columns = vec![
        left_aligned("id", cells(|row| escape(&row.id).into_owned())),
        left_aligned("started (UTC)", cells(started_cell)),
        left_aligned("state", cells(|row| row.state.label().to_owned())),
        right_aligned("errors", cells(|row| row.errors.to_string())),
        right_aligned("calls", cells(own_calls_cell)),
    ];
    if rows.iter().any(|row| row.agent_calls > 0) {
        let of_agents = cells(|row| row.agent_calls.to_string());
        columns.push(right_aligned("of agents", of_agents));
    }
    columns.extend([
        right_aligned(
            "took",
            cells(|row| format_duration(Duration::from_millis(row.duration_ms))),
        ),
        right_aligned("size", cells(|row| format_bytes(row.bytes))),
    ]);
    let room = |columns: &[Vec<String>]| width.map(|width| width.saturating_sub(used(columns)));
    let is_tight =
        |columns: &[Vec<String>]| room(columns).is_some_and(|room| room < MIN_INPUT_COLUMNS);
    while columns.len() > KEPT_COLUMNS && is_tight(&columns) {
        columns.pop();
    }
    if is_tight(&columns) {
        columns[1] = left_aligned("started", cells(short_started_cell));
    }
    let room = room(&columns).unwrap_or(MAX_INPUT_COLUMNS);
    let inputs = cells(input_cell);
    let inputs = inputs
        .iter()
        .map(|input| truncate_to_columns(input, room).into_owned());
    columns.push(left_aligned("input", inputs.collect()));
    render_rows(&columns, color)
}

/// Returns the width of columns, with the gap after each.
fn used(columns: &[Vec<String>]) -> usize {
    let titles = columns.iter().filter_map(|column| column.first());
    titles.map(|title| title.width() + 2).sum()
}

/// Returns the time without its zone, which the title names.
fn started_cell(row: &SessionRow) -> String {
    let time = row.started_ms.map_or_else(String::new, format_time);
    time.trim_end_matches(" UTC").to_owned()
}

/// Returns the time from the month to the minute.
fn short_started_cell(row: &SessionRow) -> String {
    let time = started_cell(row);
    time.get(5..16).unwrap_or_default().to_owned()
}

/// Returns the number of calls of the input.
fn own_calls_cell(row: &SessionRow) -> String {
    row.calls.saturating_sub(row.agent_calls).to_string()
}

/// Formats the rows as JSON, an object per line.
pub(crate) fn sessions_json(rows: &[SessionRow]) -> String {
    rows.iter()
        .map(|row| expect_json(serde_json::to_string(row)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn input_cell(row: &SessionRow) -> String {
    match row.input.as_deref() {
        Some("-") => "(stdin)".to_owned(),
        Some(path) => truncate_to_columns(&escape(path), MAX_INPUT_COLUMNS).into_owned(),
        None => String::new(),
    }
}

// The title and the last line of a session, and the origin of its turns.

/// Formats the title: `session of 2026-01-01 12:00:00 UTC with tools.yaml (toolq 0.1.0)`. `timestamp` is in
/// milliseconds since 1970.
pub(crate) fn session_title(session: &SessionRecord, timestamp: u64) -> String {
    format!(
        "session of {} with {} (toolq {})",
        format_time(timestamp),
        escape(&session.tools.path),
        escape(&session.toolq)
    )
}

/// Formats where a turn comes from: `msg_01, claude-sonnet-4-5, from response.json`.
pub(crate) fn turn_origin_label(turn: &TurnRecord) -> Option<Arc<str>> {
    let input = turn.input.as_deref().map(|path| match path {
        "-" => "from stdin".to_owned(),
        path => format!("from {path}"),
    });
    let parts = [turn.message_id.clone(), turn.model.clone(), input];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| escape(&parts.join(", ")).into())
}

/// Returns an exit code with what it says of a run: `exit 6 (waits for an approval)`.
pub(crate) fn exit_label(code: u8) -> String {
    let meaning = match code {
        1 => " (a result is an error)",
        2 => " (the input is wrong)",
        3 => " (incomplete)",
        6 => " (waits for an approval)",
        129.. => " (stopped by a signal)",
        _ => "",
    };
    format!("exit {code}{meaning}")
}

/// Formats the end: `exit 0 after 44ms: 8 calls, and 4 of agents (1 from memory): 10 ok, 1 failed`. `outcomes` says how the calls of
/// the session ended.
pub(crate) fn session_end_label(end: &SessionEndRecord, outcomes: &OutcomeTally) -> String {
    let took = format_duration(Duration::from_millis(end.duration_ms));
    let from_log = match end.recalled {
        0 => String::new(),
        recalled => format!(" ({recalled} from memory)"),
    };
    // A resumed run records only calls that weren't in the log, so `calls` alone may be too low.
    let all = end.calls.max(end.answered);
    let calls = calls_label(all.saturating_sub(end.agent_calls), end.agent_calls);
    let outcomes = match outcomes.labels().join(", ") {
        outcomes if outcomes.is_empty() => outcomes,
        outcomes => format!(": {outcomes}"),
    };
    let exit = exit_label(end.exit_code);
    format!("{exit} after {took}: {calls}{from_log}{outcomes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(width: Option<usize>) -> String {
        let row = SessionRow {
            id: "0504dce0".to_owned(),
            path: String::new(),
            started_ms: Some(1_763_755_200_000),
            input: Some("../turns/of/yesterday/afternoon.jsonl".to_owned()),
            runs: 1,
            calls: 12,
            agent_calls: 4,
            errors: 4,
            state: SessionState::InDoubt,
            duration_ms: 64_000,
            bytes: 11_900,
        };
        sessions_table(&[row], width, false)
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_no_broken_row() {
        for width in [50, 64, 80, 120] {
            let table = table(Some(width));
            assert!(table.lines().all(|line| line.width() <= width), "{table}");
            assert!(
                table.contains("in doubt") && table.contains("../turns"),
                "{table}"
            );
        }
        assert!(table(Some(50)).contains("11-21 20:00  in doubt"));
        assert!(!table(Some(80)).contains("KiB"));
        for title in ["started (UTC)", "calls  of agents", "took", "size", "input"] {
            assert!(table(None).contains(title), "{title}");
        }
        assert!(table(None).contains("    8          4"), "{}", table(None));
    }
}
