//! The calls in doubt of a log, each with the command that settles it.

use std::iter;
use std::path::Path;

use toolq_core::text::{
    escape, quote_for_shell, quote_path_for_shell, truncate_to_columns, wrap_words,
};
use toolq_log::{DoubtReport, LogError, list_calls_in_doubt};

use crate::log_view::session_view::format_time;

/// Maximum number of calls that are listed.
const MAX_LISTED_CALLS: usize = 5;
/// Maximum width of an id, a name or an input, in columns.
const MAX_COLUMNS: usize = 60;

/// What people read about a call in doubt.
pub(crate) struct DoubtNotice {
    /// The call, and what to do.
    text: String,
    /// The command that settles it, up to the flags that say how, if it has one.
    command: Option<String>,
}

impl DoubtNotice {
    /// Returns the notice in one line.
    pub(crate) fn line(&self) -> String {
        let command = self.command.as_ref();
        let command = command
            .map(|command| format!(" `{command}`, adding `--done --result TEXT` or `--not-done`"));
        format!("{}{}", self.text, command.unwrap_or_default())
    }

    /// Returns the notice in lines of at most `columns` columns, and each of the two commands in a line of its own, to be copied.
    pub(crate) fn lines(&self, columns: usize) -> String {
        let commands = self.command.iter().flat_map(|command| {
            ["--done --result TEXT", "--not-done"].map(|flags| format!("  {command} {flags}"))
        });
        let text = wrap_words(&self.text, columns, "  ");
        let lines: Vec<String> = iter::once(text).chain(commands).collect();
        lines.join("\n")
    }
}

/// Returns a notice for each call in doubt of the last task in the log at `path`, and one that says how many more there
/// are.
///
/// # Errors
/// The log can't be read.
pub(crate) fn doubt_notices(path: &Path) -> Result<Vec<DoubtNotice>, LogError> {
    let calls = list_calls_in_doubt(path)?;
    let shown = calls.iter().take(MAX_LISTED_CALLS);
    let mut notices: Vec<DoubtNotice> = shown.map(|call| doubt_notice(call, path)).collect();
    let more = calls.len().saturating_sub(MAX_LISTED_CALLS);
    if more > 0 {
        notices.push(DoubtNotice {
            text: format!("in doubt: {more} more, see `toolq log show`"),
            command: None,
        });
    }
    Ok(notices)
}

/// Returns the command that settles a call, up to the flags that say how. Without them, it does nothing.
pub(crate) fn resolve_command(id: &str, path: &Path) -> String {
    let (id, path) = (quote_for_shell(id), quote_path_for_shell(path));
    format!("toolq log resolve {id} {path}")
}

fn doubt_notice(call: &DoubtReport, path: &Path) -> DoubtNotice {
    let shorten = |text: &str| escape(&truncate_to_columns(text, MAX_COLUMNS)).into_owned();
    let (tool, id) = (shorten(&call.tool_name), shorten(&call.tool_use_id));
    let input = call.input.as_deref().map(shorten);
    let input = input.map_or_else(String::new, |input| format!(" {input}"));
    let killed = if call.was_killed {
        " by a run that was killed"
    } else {
        ""
    };
    let started = format_time(call.started_ms);
    DoubtNotice {
        text: format!(
            "in doubt: {tool} {id}{input}, started {started}{killed}. Check whether it happened, then:"
        ),
        command: Some(resolve_command(&call.resolve_id, path)),
    }
}
