//! `toolq log stats`: each tool's calls in numbers, over all logs together.

use crate::args::{LogFormat, LogStats as Arguments};
use crate::commands::log::{each_record, files};
use crate::context::Context;
use crate::log_view::Stats;
use crate::output::stdout;
use crate::output::{Exit, Failure};

/// Prints them.
///
/// # Errors
/// A log that can't be read, or a stdout that takes no more.
pub fn stats(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let mut stats = Stats::default();
    for path in files(&arguments.from, context)? {
        each_record(&path, context, |record| stats.take(record))?;
        stats.end_of_log();
    }
    match arguments.format {
        LogFormat::Text => stdout::line(&stats.table(context.stderr.color_of_stdout()))?,
        LogFormat::Json => stdout::line(&stats.json())?,
    }
    Ok(Exit::Ok)
}
