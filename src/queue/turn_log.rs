//! The log of a turn: read from the stream into a file, where it is resumed like any other.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tempfile::TempDir;

use crate::queue::names::TurnName;
use crate::queue::turn_queue::TurnQueue;

/// The records of a turn that the stream has.
#[derive(Debug, Default)]
pub(super) struct StoredRecords {
    lines: Vec<u8>,
    /// The sequence of the last message, or 0 if there is none.
    pub last: u64,
}

impl StoredRecords {
    /// Reads the log of a turn that was submitted with the message `submitted`: all records come after it.
    pub(super) async fn read(
        queue: &TurnQueue,
        turn: &TurnName,
        submitted: u64,
    ) -> Result<Self, String> {
        let subject = turn.log_subject(&queue.name);
        let mut records = Self::default();
        let mut from = submitted;
        while let Some(message) = queue.next_message(&subject, from).await? {
            records.lines.extend_from_slice(&message.payload);
            records.last = message.sequence;
            from = message.sequence + 1;
        }
        Ok(records)
    }

    /// Returns how many workers began this turn and didn't come to an end: they were killed, or lost the turn.
    pub(super) fn unfinished_runs(&self) -> usize {
        let (mut begun, mut ended) = (0, 0);
        for line in self.lines.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(RecordType { kind: "session" }) => begun += 1,
                Ok(RecordType {
                    kind: "session_end",
                }) => ended += 1,
                _ => {}
            }
        }
        begun - ended.min(begun)
    }
}

#[derive(Deserialize)]
struct RecordType<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a str,
}

/// A log in a directory of its own, which is removed with it.
pub(super) struct LogFile {
    dir: TempDir,
}

impl LogFile {
    /// Writes the records to a file that only this user can read.
    pub(super) fn create(records: &StoredRecords) -> io::Result<Self> {
        let file = Self {
            dir: tempfile::Builder::new().prefix("toolq-turn-").tempdir()?,
        };
        if !records.lines.is_empty() {
            let mut log = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(file.path())?;
            log.write_all(&records.lines)?;
        }
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("turn.jsonl")
    }

    /// Returns its directory.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }
}
