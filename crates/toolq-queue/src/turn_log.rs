//! The log of a turn: read from the stream into a file, where it is resumed like any other.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::log_files::{LogFiles, write_private};
use crate::stored_records::StoredRecords;
use crate::turn_failure::TurnFailure;
use crate::turn_queue::TurnQueue;

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
