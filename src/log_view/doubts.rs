//! The calls in doubt of a log, each with the command that settles it.

use std::path::Path;

use toolq_core::text::{escape, truncate_to_columns};
use toolq_log::{CallInDoubt, LogError, list_calls_in_doubt};

use crate::log_view::session_view::format_time;

/// Maximum number of calls that are listed.
const MAX_LISTED_CALLS: usize = 5;
/// Maximum width of an id, a name or an input, in columns.
const MAX_COLUMNS: usize = 60;

/// Returns a line for each call in doubt of the last task in the log at `path`, and one that says how many more there
/// are.
///
/// # Errors
/// The log can't be read.
pub(crate) fn in_doubt_lines(path: &Path) -> Result<Vec<String>, LogError> {
    let calls = list_calls_in_doubt(path)?;
    let shown = calls.iter().take(MAX_LISTED_CALLS);
    let mut lines: Vec<String> = shown.map(|call| in_doubt_line(call, path)).collect();
    let more = calls.len().saturating_sub(MAX_LISTED_CALLS);
    if more > 0 {
        lines.push(format!("in doubt: {more} more, see `toolq log show`"));
    }
    Ok(lines)
}

fn in_doubt_line(call: &CallInDoubt, path: &Path) -> String {
    let shorten = |text: &str| escape(&truncate_to_columns(text, MAX_COLUMNS)).into_owned();
    let (tool, id) = (shorten(&call.tool_name), shorten(&call.tool_use_id));
    let input = call.input.as_deref().map(shorten);
    let input = input.map_or_else(String::new, |input| format!(" {input}"));
    let killed = if call.was_killed {
        " by a run that was killed"
    } else {
        ""
    };
    format!(
        "in doubt: {tool} {id}{input}, started {}{killed}. Check whether it happened, then: toolq log resolve {} {} --done --result TEXT | --not-done",
        format_time(call.started_ms),
        call.resolve_id,
        escape(&path.display().to_string())
    )
}
