//! Finds the logs in the default directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::LogError;
use crate::open::lock;
use crate::open::paths::{lacks_input, names_input};
use crate::read::RecordReader;
use crate::records::{SessionRecord, sha256_hex};

/// Returns the logs in `dir`, sorted by name, and so by time. Empty if the directory doesn't exist.
///
/// # Errors
/// The directory can't be read.
pub fn list_sessions(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    list_matching_files(dir, |name| name.ends_with(b".jsonl"))
}

/// Returns the files in `dir` to which torn ends of logs were copied.
///
/// # Errors
/// The directory can't be read.
pub fn list_torn_copies(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    list_matching_files(dir, |name| {
        let infix = b".jsonl.torn-";
        name.windows(infix.len()).any(|window| window == infix)
    })
}

/// Returns the entries of `dir` whose names are wanted, sorted. Empty if the directory doesn't exist.
pub(crate) fn list_matching_files(
    dir: &Path,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Result<Vec<PathBuf>, LogError> {
    let list_error = |source| LogError::Io {
        path: dir.to_owned(),
        action: "listed",
        source,
    };
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(list_error)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(list_error)?;
        if is_wanted(entry.file_name().as_encoded_bytes()) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the log in `dir` that was written last.
///
/// # Errors
/// The directory can't be read, or has no logs.
pub fn find_latest_session(dir: &Path) -> Result<PathBuf, LogError> {
    // Of several with the same time, the last by name wins.
    let latest = list_sessions(dir)?.into_iter().max_by_key(last_modified);
    latest.ok_or_else(|| LogError::NoSession(dir.to_owned()))
}

/// Returns the log in `dir` that was written last, of those whose first session had the input with this digest.
///
/// # Errors
/// The directory can't be read.
pub fn find_latest_session_for_input(
    dir: &Path,
    input_sha256: &str,
) -> Result<Option<PathBuf>, LogError> {
    let is_of_input = |log: &PathBuf| {
        let session = read_first_session(log);
        session.is_some_and(|session| session.input_sha256.as_deref() == Some(input_sha256))
    };
    let named = latest_first(dir, |name| names_input(name, input_sha256))?;
    if let Some(log) = named.into_iter().find(is_of_input) {
        return Ok(Some(log));
    }
    // Earlier versions didn't put the input into the name.
    let unnamed = latest_first(dir, lacks_input)?;
    Ok(unnamed.into_iter().find(is_of_input))
}

/// Returns the logs in `dir` whose names are wanted, the one that was written last first.
pub(crate) fn latest_first(
    dir: &Path,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Result<Vec<PathBuf>, LogError> {
    let mut logs = list_matching_files(dir, is_wanted)?;
    logs.sort_by_key(last_modified);
    logs.reverse();
    Ok(logs)
}

/// Returns the first session of a log, or `None` if it can't be read.
pub(crate) fn read_first_session(log: &Path) -> Option<SessionRecord> {
    // The log may be about to be continued, so the strict checks apply.
    let first = RecordReader::from_file(lock::open_owned(log).ok()?)
        .next()?
        .ok()?;
    first.parse_metadata().ok()
}

/// Returns whether `dir` has more than `max_bytes` in logs and the files next to them, or more than `max_files` of them.
/// Stops counting there, so that this takes little time even for a large directory. What can't be read counts as nothing.
pub fn exceeds_size(dir: &Path, max_bytes: u64, max_files: usize) -> bool {
    let (mut bytes, mut files) = (0, 0);
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => dirs.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
            files += 1;
            if bytes > max_bytes || files > max_files {
                return true;
            }
        }
    }
    false
}

/// Combines the digests of inputs: a single one is returned unchanged, several are concatenated and hashed.
pub fn combine_digests<'a>(input_digests: impl Iterator<Item = &'a str>) -> String {
    let digests: Vec<&str> = input_digests.collect();
    match digests.as_slice() {
        [one] => (*one).to_owned(),
        many => sha256_hex(many.concat().as_bytes()),
    }
}

/// Returns when a log was written last.
fn last_modified(log: &PathBuf) -> SystemTime {
    let metadata = fs::symlink_metadata(log);
    let time = metadata.and_then(|metadata| metadata.modified());
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}
