//! The log of a turn: read from the stream into a file, where it is resumed like any other. Headers of messages name the files beside it.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use async_nats::HeaderMap;
use tempfile::TempDir;

use crate::stored_records::StoredRecords;
use crate::turn_failure::TurnFailure;
use crate::turn_queue::TurnQueue;
use toolq_core::os::create_private_dir;

/// The header that names the files that records refer to, except those that were named before.
const FILES: &str = "Toolq-Files";
/// Length of a digest in hexadecimal, with which the names of these files begin.
const DIGEST_CHARS: usize = 64;

/// A log in a directory of its own, which is removed with it.
pub(super) struct TurnLogFile {
    dir: TempDir,
    files: LogFiles,
}

impl TurnLogFile {
    /// Writes the records, and the files that they refer to, so that only this user can read them.
    ///
    /// # Errors
    /// The log can't be written, or a file that a record refers to can't be read.
    pub(super) async fn restore(
        queue: &TurnQueue,
        records: &StoredRecords,
    ) -> Result<Self, TurnFailure> {
        let unwritten =
            |error: io::Error| TurnFailure::Passing(format!("its log can't be written: {error}"));
        let mut file = Self::create(records).map_err(unwritten)?;
        for name in &records.files {
            let body = queue.read_file(name).await;
            let body = body.map_err(TurnFailure::Passing)?.ok_or_else(|| {
                TurnFailure::Permanent(format!("the file {name} of its log is gone"))
            })?;
            file.files.add(name, &body).map_err(unwritten)?;
        }
        Ok(file)
    }

    pub(super) fn create(records: &StoredRecords) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("toolq-turn-").tempdir()?;
        let path = dir.path().join("turn.jsonl");
        if !records.lines.is_empty() {
            write_private(&path, &records.lines)?;
        }
        let files = LogFiles::beside(&path);
        Ok(Self { dir, files })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("turn.jsonl")
    }

    /// Returns its directory.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the files beside it.
    pub(super) fn files(&self) -> LogFiles {
        self.files.clone()
    }
}

/// The files beside a log, with what is too large for its records.
#[derive(Debug, Clone)]
pub(super) struct LogFiles {
    dir: PathBuf,
    /// Those that the stream has.
    known: HashSet<String>,
}

impl LogFiles {
    /// Returns the files beside the log at this path. The stream doesn't have any of them yet.
    pub(super) fn beside(log: &Path) -> Self {
        Self {
            dir: toolq_log::blob_dir_for(log),
            known: HashSet::new(),
        }
    }

    /// Writes a file that the stream has.
    pub(super) fn add(&mut self, name: &str, body: &[u8]) -> io::Result<()> {
        if self.known.insert(name.to_owned()) {
            create_private_dir(&self.dir)?;
            write_private(&self.dir.join(name), body)?;
        }
        Ok(())
    }

    /// Returns the files that the stream doesn't have yet. From now on, they count as stored.
    pub(super) fn take_new(&mut self) -> Vec<PathBuf> {
        // If there is no directory, there are no files.
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let new = names.filter(|name| is_file_name(name) && self.known.insert(name.clone()));
        new.map(|name| self.dir.join(name)).collect()
    }
}

/// Names files in the headers of the message that first refers to them.
pub(super) fn name_files(headers: &mut HeaderMap, files: &[PathBuf]) {
    let names = files.iter().filter_map(|file| file.file_name()?.to_str());
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        headers.insert(FILES, names.join(" "));
    }
}

/// Returns the names of the files that the headers of a message name.
pub(super) fn named_files(headers: &HeaderMap) -> Vec<String> {
    let names = headers.get(FILES).map_or("", |names| names.as_str());
    let names = names.split_whitespace().filter(|name| is_file_name(name));
    names.map(str::to_owned).collect()
}

/// Returns whether toolq could have given a file this name: a digest, perhaps with an extension.
fn is_file_name(name: &str) -> bool {
    let (digest, extension) = name.split_once('.').unwrap_or((name, "x"));
    let is_hex = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_word = extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    digest.len() == DIGEST_CHARS && is_hex && is_word && extension != "part"
}

/// Writes a new file that only this user can read.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_toolq_gives_are_files_of_a_log() {
        let digest = "0a".repeat(32);
        for name in [digest.clone(), format!("{digest}.png")] {
            assert!(is_file_name(&name), "{name}");
        }
        for name in ["", "../x", &format!("{digest}.part"), &digest[1..], "a b"] {
            assert!(!is_file_name(name), "{name}");
        }
        assert!(!is_file_name(&format!("{digest}./x")));
    }
}
