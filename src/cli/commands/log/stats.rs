//! `toolq log stats`: each tool's calls in numbers, over all logs together.

use super::{each_record, files};
use crate::cli::arguments::{LogFormat, LogStats as Arguments};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::stdout;
use crate::report::Stats;

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
