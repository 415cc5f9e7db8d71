//! Finds and opens the logs that a verb of `toolq log` reads.

use std::path::{Path, PathBuf};

use crate::commands::log::LogFileArguments;
use crate::context::CommandContext;
use crate::input::stdin;
use crate::log_view::timeline::{LogTimeline, TimelineReader};
use crate::output::CommandError;
use toolq_core::text::format_bytes;
use toolq_log::{Access, Corruption, LogError, Record, RecordContent, RecordReader};

/// Larger content in a separate file is mentioned, but not read.
pub(super) const MAX_INLINE_BODY_BYTES: u64 = 1 << 20;

/// Returns the named logs, or the one that `TOOLQ_LOG_FILE` names, or the latest session.
pub(crate) fn select_logs(
    named: &LogFileArguments,
    context: &CommandContext,
) -> Result<Vec<PathBuf>, CommandError> {
    if !named.files.is_empty() {
        let files = named.files.iter();
        return Ok(files.map(|file| find_session(file, context)).collect());
    }
    if let Some(log) = context.environment.get_os("TOOLQ_LOG_FILE") {
        return Ok(vec![log.into()]);
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
fn latest_session(context: &CommandContext, access: Access) -> Result<PathBuf, CommandError> {
    let directory = toolq_log::sessions_dir(&context.environment);
    let latest = directory.and_then(|directory| toolq_log::find_latest_session(&directory));
    latest.map_err(|error| error.for_command(access))
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
    visit: impl FnMut(&Record) -> Result<(), Corruption>,
) -> Result<(), CommandError> {
    if let Some(torn_end) = visit_records(path, visit)? {
        warn_torn(path, &torn_end, context);
    }
    Ok(())
}

/// Calls `visit` for each record of a log. Returns its torn end, if it has one.
fn visit_records(
    path: &Path,
    mut visit: impl FnMut(&Record) -> Result<(), Corruption>,
) -> Result<Option<Corruption>, CommandError> {
    let mut records = open_log(path)?;
    let mut torn_end = None;
    while let Some(record) = records.next_borrowed() {
        match record.and_then(|record| visit(&record)) {
            Ok(()) => {}
            Err(corruption) if corruption.is_torn_end() => torn_end = Some(corruption),
            Err(corruption) => {
                return Err(unreadable_log(&LogError::from_corruption(path, corruption)));
            }
        }
    }
    Ok(torn_end)
}

/// Warns that a log ends in an incomplete record.
pub(crate) fn warn_torn(path: &Path, corruption: &Corruption, context: &CommandContext) {
    let path = path.display();
    let warning = format!("{path} is incomplete at {corruption}");
    context.stderr.print_warning(&warning);
}

/// Converts the error of reading a log.
pub(crate) fn unreadable_log(error: &LogError) -> CommandError {
    error.for_command(Access::Read)
}

/// Loads the content as JSON, or returns the text to show instead: if it is in a file of its own with more than `max_bytes`.
pub(crate) fn load_content(
    body: &RecordContent,
    log: &Path,
    max_bytes: u64,
) -> Result<String, String> {
    if body.is_stored() && body.len() > max_bytes {
        return Err(format!(
            "{} in a file next to the log",
            format_bytes(body.len())
        ));
    }
    let loaded = body.load(log);
    loaded
        .map(|json| json.get().to_owned())
        .map_err(|error| error.to_string())
}

/// Reads the calls of a log with their times, and its torn end, if it has one.
///
/// # Errors
/// The log can't be read.
pub(crate) fn read_timeline(
    path: &Path,
) -> Result<(LogTimeline, Option<Corruption>), CommandError> {
    // Stored content is next to the log itself, not to a symlink.
    let canonical_path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut reader = TimelineReader::default();
    let torn_end = visit_records(path, |record| {
        reader.add_record(record, &mut || {
            load_content(&record.content, &canonical_path, MAX_INLINE_BODY_BYTES)
        })
    })?;
    Ok((reader.finish(), torn_end))
}

// Short names of the sessions in the default directory: the end of the file's name.

/// Number of characters of an id.
const ID_LENGTH: usize = 8;

/// Returns the id of a session with a name such as `20251121T200000Z-0123abcd.jsonl`, or else the whole name.
pub(crate) fn session_id(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match name.rsplit_once('-') {
        Some((_, id)) if is_id(id) => id.to_owned(),
        _ => name.into_owned(),
    }
}

/// Returns the path of the session in the default directory with the id `file`, or else `file`. A file of that name comes
/// first.
pub(crate) fn find_session(file: &Path, context: &CommandContext) -> PathBuf {
    let named = file.to_str().filter(|id| is_id(id) && !file.exists());
    let sessions = named.map(|id| {
        let directory = toolq_log::sessions_dir(&context.environment);
        let logs = directory.and_then(|directory| toolq_log::list_sessions(&directory));
        let mut logs = logs.unwrap_or_default();
        logs.retain(|log| session_id(log) == id);
        logs
    });
    let latest = sessions.and_then(|mut sessions| sessions.pop());
    latest.unwrap_or_else(|| file.to_owned())
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
