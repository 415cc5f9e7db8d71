//! The sessions that are kept where nobody named a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::LogError;

/// The logs of `folder`, sorted by name, which begins with the time; none where there is no such folder.
///
/// # Errors
/// The folder can't be read.
pub fn sessions(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    files(folder, |name| name.ends_with(b".jsonl"))
}

/// The files of `folder` that torn ends of logs were copied to.
///
/// # Errors
/// The folder can't be read.
pub fn torn_ends(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    files(folder, |name| {
        let mark = b".jsonl.torn-";
        name.windows(mark.len()).any(|part| part == mark)
    })
}

fn files(folder: &Path, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Vec<PathBuf>, LogError> {
    let unreadable = |source| LogError::Io {
        path: folder.to_owned(),
        doing: "listed",
        source,
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        if is_wanted(entry.file_name().as_encoded_bytes()) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The log of `folder` that was written last.
///
/// # Errors
/// The folder can't be read, or has none.
pub fn latest_session(folder: &Path) -> Result<PathBuf, LogError> {
    let written = |log: &PathBuf| {
        let metadata = fs::symlink_metadata(log);
        let time = metadata.and_then(|metadata| metadata.modified());
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    // Of several at the same time the last by name wins.
    let latest = sessions(folder)?.into_iter().max_by_key(written);
    latest.ok_or_else(|| LogError::NoSession(folder.to_owned()))
}
