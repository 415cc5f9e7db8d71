//! `toolq log stats`: prints statistics of each tool over all logs.

use crate::args::log::LogStatsArguments as Arguments;
use crate::args::values::LogFormat;
use crate::commands::log::log_files::{for_each_record, select_logs};
use crate::context::CommandContext;
use crate::log_view::StatsCollector;
use crate::output::{CommandError, Exit, stdout};

/// Prints the statistics.
///
/// # Errors
/// A log can't be read, or stdout can't be written.
pub fn print_stats(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let mut stats = StatsCollector::default();
    for path in select_logs(&arguments.logs, context)? {
        for_each_record(&path, context, |record| stats.add_record(record))?;
        stats.finish_log();
    }
    match arguments.format {
        LogFormat::Text => {
            let table = stats.to_table(context.stderr.is_stdout_colored());
            stdout::write_line(&context.stderr.own_symbols(table))?;
        }
        LogFormat::Json => stdout::write_line(&stats.to_json())?,
    }
    Ok(Exit::Ok)
}
