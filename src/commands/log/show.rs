//! `toolq log show`: prints calls and their results for people, or the records verbatim. `-f` follows a growing log.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::log::LogShowArguments as Arguments;
use crate::args::values::LogFormat;
use crate::commands::log::log_files::{
    load_content, open_log, select_logs, unreadable_log, warn_torn,
};
use crate::commands::log::log_printer::LogPrinter;
use crate::context::CommandContext;
use crate::log_view::{ToolNameFilter, WholeCallRenderer};
use crate::output::{CommandError, Exit, stdout};
use toolq_core::text::{escape, quote_path_for_shell};
use toolq_log::LogError;

/// Prints the logs, one after another.
///
/// # Errors
/// A log can't be read, or stdout can't be written. The records before any corruption are printed.
pub fn show_logs(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let paths = select_logs(&arguments.logs, context)?;
    if arguments.follow && paths.len() > 1 {
        return Err(
            CommandError::usage("only one log can be followed at a time")
                .with_hint("name one of them, or leave out `-f`"),
        );
    }
    if arguments.follow && paths.iter().any(|path| path == Path::new("-")) {
        return Err(CommandError::usage("stdin can't be followed")
            .with_hint("name the log: `toolq log show -f FILE`"));
    }
    if let Some(id) = &arguments.id {
        return show_call(id, &paths, arguments.format, context);
    }
    let mut name_filter = ToolNameFilter::new(&arguments.tool);
    for (number, path) in paths.iter().enumerate() {
        // A path that wasn't typed isn't known yet.
        let is_named = paths.len() > 1 || !arguments.logs.files.contains(path);
        if is_named && arguments.format == LogFormat::Text {
            let gap = if number > 0 { "\n" } else { "" };
            let name = path.display().to_string();
            stdout::write_line(&format!("{gap}{}:", escape(&name)))?;
        }
        LogPrinter::new(path, arguments, context, &mut name_filter)?.print_log()?;
    }
    warn_missing_tools(&name_filter, &paths, context);
    Ok(Exit::Ok)
}

/// Warns about named tools without calls.
fn warn_missing_tools(name_filter: &ToolNameFilter, paths: &[PathBuf], context: &CommandContext) {
    let place = match paths {
        [path] => path.display().to_string(),
        _ => "these logs".to_owned(),
    };
    for (name, near) in name_filter.missing() {
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let warning = format!("no calls of {name} in {place}{near}");
        context.stderr.print_warning(&warning);
    }
}

// `toolq log show --id`: all that a log has of one call.

/// Prints the records of the call with this id, for people or verbatim.
///
/// # Errors
/// A log can't be read, no log has such a call, or stdout can't be written.
fn show_call(
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
