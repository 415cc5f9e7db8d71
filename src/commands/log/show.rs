//! `toolq log show`: prints calls and their results for people, or the records verbatim. `-f` follows a growing log.

use std::path::{Path, PathBuf};

use crate::args::{LogFormat, LogShowArguments as Arguments};
use crate::commands::log::log_files::select_logs;
use crate::commands::log::log_printer::LogPrinter;
use crate::commands::log::show_call::show_call;
use crate::context::CommandContext;
use crate::log_view::ToolNameFilter;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use toolq_core::text::escape;

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
