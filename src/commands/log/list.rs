//! `toolq log list`: the sessions in the default directory, the latest first.

use std::path::{Path, PathBuf};

use crate::args::LogFormat;
use crate::commands::log::LogListArguments;
use crate::commands::log::log_files::{open_log, read_timeline, session_id};
use crate::context::CommandContext;
use crate::log_view::timeline::{LogTimeline, LoggedRun};
use crate::log_view::{SessionRow, SessionState, sessions_json, sessions_table};
use crate::output::{CommandError, Exit, stdout};
use toolq_log::memory::{RememberedIn, calls_in_doubt};
use toolq_log::{Access, LogError, session_bytes};

/// Prints a row for each session.
///
/// # Errors
/// The directory can't be read, or stdout can't be written. A session that can't be read has a row, too.
pub fn list_sessions(
    arguments: &LogListArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let log_error = |error: LogError| error.for_command(Access::Read);
    let directory = toolq_log::sessions_dir(&context.environment).map_err(log_error)?;
    let state_dir = toolq_log::state_dir(&context.environment).map_err(log_error)?;
    let place = RememberedIn::state(&state_dir);
    let mut paths = toolq_log::list_sessions(&directory).map_err(log_error)?;
    let torn_copies = toolq_log::list_torn_copies(&directory).map_err(log_error)?;
    // Their names begin with the time.
    paths.reverse();
    let found = paths.len();
    paths.truncate(if arguments.all {
        found
    } else {
        arguments.limit
    });
    let rows: Vec<SessionRow> = paths
        .iter()
        .map(|path| session_row(path, &place, &torn_copies))
        .collect();
    match arguments.format {
        _ if rows.is_empty() => {}
        LogFormat::Text => {
            let width = stdout::width();
            let table = sessions_table(&rows, width, context.stderr.is_stdout_colored());
            stdout::write_line(&context.stderr.own_symbols(table))?;
        }
        LogFormat::Json => stdout::write_line(&sessions_json(&rows))?,
    }
    let shown = match (rows.len(), found) {
        (_, 0) => "no sessions".to_owned(),
        (shown, found) if shown < found => format!("the latest {shown} of {found} sessions"),
        (_, found) => toolq_core::text::format_count(found as u64, "session"),
    };
    context
        .stderr
        .print_note(&format!("{shown} in {}", directory.display()));
    Ok(Exit::Ok)
}

fn session_row(path: &Path, place: &RememberedIn, torn_copies: &[PathBuf]) -> SessionRow {
    let read = read_timeline(path);
    let is_damaged = read.is_err();
    let (timeline, _) = read.unwrap_or_default();
    let calls = || timeline.calls.iter();
    let errors = calls().filter(|call| call.outcome.is_failure());
    SessionRow {
        id: session_id(path),
        path: path.display().to_string(),
        started_ms: timeline.runs.first().map(|run| run.started_ms),
        input: timeline.runs.iter().find_map(|run| run.input.clone()),
        runs: timeline.runs.len(),
        calls: timeline.calls.len(),
        agent_calls: calls().filter(|call| call.parent.is_some()).count(),
        errors: errors.count(),
        state: if is_damaged {
            SessionState::Damaged
        } else {
            session_state(path, place, &timeline)
        },
        duration_ms: duration_ms(&timeline),
        bytes: session_bytes(path, torn_copies),
    }
}

fn session_state(path: &Path, place: &RememberedIn, timeline: &LogTimeline) -> SessionState {
    let last = timeline.runs.last();
    let end = last.and_then(|run| run.end.as_ref());
    let is_running = || {
        let has_writer = open_log(path).is_ok_and(|log| log.has_writer());
        has_writer || last.is_some_and(|run| run.is_running)
    };
    if end.is_none() && is_running() {
        return SessionState::Running;
    }
    match calls_in_doubt(path, place) {
        Ok(calls) if !calls.is_empty() => SessionState::InDoubt,
        Ok(_) => match end.map(|end| end.exit_code) {
            Some(3) => SessionState::Incomplete,
            Some(6) => SessionState::Waiting,
            Some(_) => SessionState::Finished,
            None => SessionState::Killed,
        },
        Err(_) => SessionState::Damaged,
    }
}

/// Returns how long the runs took together. One without an end took until its last record, or until now.
fn duration_ms(timeline: &LogTimeline) -> u64 {
    let took = |run: &LoggedRun| match &run.end {
        Some(recorded) => recorded.duration_ms,
        None => run.last_ms.saturating_sub(run.started_ms),
    };
    timeline.runs.iter().map(took).sum()
}
