//! Finds the logs in the default directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::LogError;

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

/// Returns when a log was written last.
fn last_modified(log: &PathBuf) -> SystemTime {
    let metadata = fs::symlink_metadata(log);
    let time = metadata.and_then(|metadata| metadata.modified());
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}
