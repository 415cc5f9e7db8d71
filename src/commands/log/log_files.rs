//! Finds and opens the logs that a verb of `toolq log` reads.

use std::path::{Path, PathBuf};

use crate::args::LogFileArguments;
use crate::context::CommandContext;
use crate::input::stdin;
use crate::output::CommandError;
use toolq_log::{Access, Corruption, LogError, Record, RecordReader};

/// Returns the named logs, or the latest session.
pub(crate) fn select_logs(
    named: &LogFileArguments,
    context: &CommandContext,
) -> Result<Vec<PathBuf>, CommandError> {
    if !named.files.is_empty() {
        return Ok(named.files.clone());
    }
    let latest = latest_session(context, Access::Read)?;
    if context.verbose {
        let path = latest.display();
        context
            .stderr
            .print_note(&format!("latest session: {path}"));
    }
    Ok(vec![latest])
}

/// Returns the session in the default directory that was written last.
pub(crate) fn latest_session(
    context: &CommandContext,
    access: Access,
) -> Result<PathBuf, CommandError> {
    let directory = toolq_log::sessions_dir(&context.environment);
    let latest = directory.and_then(|directory| toolq_log::find_latest_session(&directory));
    latest.map_err(|error| CommandError::from_log_error(&error, access))
}

/// Opens a log for reading; `-` is stdin.
///
/// # Errors
/// The log can't be read.
pub(crate) fn open_log(path: &Path) -> Result<RecordReader, CommandError> {
    if path == Path::new("-") {
        return Ok(RecordReader::from_file(stdin::spool()?));
    }
    RecordReader::open(path).map_err(|error| unreadable_log(&error))
}

/// Calls `visit` for each record of a log. A torn end, as left by a killed run, only causes a warning.
pub(crate) fn for_each_record(
    path: &Path,
    context: &CommandContext,
    mut visit: impl FnMut(&Record) -> Result<(), Corruption>,
) -> Result<(), CommandError> {
    let mut records = open_log(path)?;
    while let Some(record) = records.next_borrowed() {
        let result = record.and_then(|record| visit(&record));
        if let Err(corruption) = result {
            if !corruption.is_torn_end() {
                return Err(unreadable_log(&LogError::from_corruption(path, corruption)));
            }
            warn_torn(path, &corruption, context);
        }
    }
    Ok(())
}

/// Warns that a log ends in an incomplete record.
pub(crate) fn warn_torn(path: &Path, corruption: &Corruption, context: &CommandContext) {
    let path = path.display();
    let warning = format!("{path} is incomplete at {corruption}");
    context.stderr.print_warning(&warning);
}

/// Converts the error of reading a log.
pub(crate) fn unreadable_log(error: &LogError) -> CommandError {
    CommandError::from_log_error(error, Access::Read)
}
