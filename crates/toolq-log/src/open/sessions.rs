//! The sessions that are kept where nobody named a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::LogError;
use crate::open::lock;
use crate::read::Records;
use crate::records::{SessionStart, sha256};

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

/// What of `folder` has a name that is wanted, sorted; none where there is no such folder.
pub(crate) fn files(
    folder: &Path,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Result<Vec<PathBuf>, LogError> {
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
    // Of several at the same time the last by name wins.
    let latest = sessions(folder)?.into_iter().max_by_key(written);
    latest.ok_or_else(|| LogError::NoSession(folder.to_owned()))
}

/// The log of `folder` that was written last, of those whose first session had the input of this digest.
///
/// # Errors
/// The folder can't be read.
pub fn latest_of_input(folder: &Path, input_sha256: &str) -> Result<Option<PathBuf>, LogError> {
    let mut logs = sessions(folder)?;
    logs.sort_by_key(written);
    let is_of_input = |log: &PathBuf| input_of(log).as_deref() == Some(input_sha256);
    Ok(logs.into_iter().rev().find(is_of_input))
}

/// The digest of the input of a log's first session.
fn input_of(log: &Path) -> Option<String> {
    // It is about to be continued.
    let first = Records::of(lock::open_own(log).ok()?).next()?.ok()?;
    let session: SessionStart = first.metadata().ok()?;
    session.input_sha256
}

/// The digest of several inputs: that of one is its own, that of many is of their digests one behind the other.
pub fn digest_of<'a>(inputs: impl Iterator<Item = &'a str>) -> String {
    let digests: Vec<&str> = inputs.collect();
    match digests.as_slice() {
        [one] => (*one).to_owned(),
        many => sha256(many.concat().as_bytes()),
    }
}

/// When a log was written last.
fn written(log: &PathBuf) -> SystemTime {
    let metadata = fs::symlink_metadata(log);
    let time = metadata.and_then(|metadata| metadata.modified());
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}
