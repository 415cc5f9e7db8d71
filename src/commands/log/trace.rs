//! `toolq log trace`: a log as Chrome trace events.

use crate::args::LogPageArguments as Arguments;
use crate::commands::log::log_files::{read_timeline, select_log, warn_torn, write_output};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use crate::timeline::write_trace_events;

/// Prints the trace of a log, or writes it to a file.
///
/// # Errors
/// The log can't be read, or the trace can't be written.
pub fn print_trace(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let path = select_log(arguments.file.as_deref(), context)?;
    let (timeline, torn_end) = read_timeline(&path)?;
    if let Some(torn_end) = torn_end {
        warn_torn(&path, &torn_end, context);
    }
    let trace = write_trace_events(&timeline, &path.display().to_string());
    write_output(arguments.output.as_deref(), &trace)?;
    Ok(Exit::Ok)
}
