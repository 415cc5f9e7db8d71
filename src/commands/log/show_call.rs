//! `toolq log show --id`: all that a log has of one call.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::LogFormat;
use crate::commands::log::log_files::{load_content, open_log, unreadable_log, warn_torn};
use crate::context::CommandContext;
use crate::log_view::WholeCallRenderer;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use toolq_core::text::escape;
use toolq_core::text::quote_path_for_shell;
use toolq_log::LogError;

/// Prints the records of the call with this id, for people or verbatim.
///
/// # Errors
/// A log can't be read, no log has such a call, or stdout can't be written.
pub(super) fn show_call(
    id: &str,
    paths: &[PathBuf],
    format: LogFormat,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut is_known = false;
    for path in paths {
        is_known |= show_in_log(id, path, format, context)?;
    }
    if is_known {
        return Ok(Exit::Ok);
    }
    let place = match paths {
        [path] => path.display().to_string(),
        _ => "these logs".to_owned(),
    };
    let log = match paths {
        [path] => quote_path_for_shell(path),
        _ => "LOG".to_owned(),
    };
    let hint = format!("`toolq log show --format json {log}` prints the ids of all calls");
    Err(CommandError::usage(format!("no call {id} in {place}")).with_hint(hint))
}

/// Returns whether the log has the call.
fn show_in_log(
    id: &str,
    path: &Path,
    format: LogFormat,
    context: &CommandContext,
) -> Result<bool, CommandError> {
    // Stored content is next to the log itself, not to a symlink.
    let canonical_path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut call = WholeCallRenderer::new(id);
    let mut records = open_log(path)?;
    let mut is_known = false;
    while let Some(record) = records.next() {
        let rendered = record.and_then(|record| {
            let mut content = || load_content(&record.content, &canonical_path, u64::MAX);
            call.render_record(&record, &mut content)
        });
        match rendered {
            Ok(None) => {}
            Ok(Some(_)) if format == LogFormat::Json => {
                stdout::write_line(records.last_line())?;
                is_known = true;
            }
            Ok(Some(text)) => {
                if !is_known {
                    stdout::write_line(&format!("{}:", escape(&path.display().to_string())))?;
                }
                is_known = true;
                stdout::write_line(&text)?;
            }
            Err(damage) if damage.is_torn_end() => warn_torn(path, &damage, context),
            Err(damage) => return Err(unreadable_log(&LogError::from_corruption(path, damage))),
        }
    }
    Ok(is_known)
}
