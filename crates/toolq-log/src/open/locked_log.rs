//! Opens a log to continue it: locks it, and verifies it from the first record to the last. Nothing is written until a
//! session begins or a record is appended; then a torn end is set aside first.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::LogError;
use crate::open::lock;
use crate::open::recover;
use crate::open::recover::TornEnd;
use crate::read::{Corruption, RecordReader};
use crate::records::{FormatVersion, Record, RecoveredRecord, SessionHeader};
use crate::resume::TaskHistory;
use crate::write::{
    DiskFile, Journal, LogFile, LogReplica, ReplicatedFile, SessionLog, unreliable_file_system,
};
use redact::Mask;
use toolq_core::os::{Clock, sync_parent};

/// A log that no other toolq can write to, and whose records are all intact.
pub struct LockedLog {
    path: PathBuf,
    locked_file: File,
    /// How many records the file has.
    record_count: u64,
    /// Size of the whole records in bytes.
    whole_bytes: u64,
    torn_end: Option<TornEnd>,
    /// Whether the last run has no end.
    is_unfinished: bool,
    /// The second place of all records, if there is one.
    replica: Option<Box<dyn LogReplica>>,
}

impl LockedLog {
    /// Opens the log at `path`, or creates an empty one; its directory must exist. Passes each record to `visit`, with
    /// the byte offset of its end in the file; `visit` may reject it. Writes nothing.
    ///
    /// # Errors
    /// The file can't be a log, is in use, is damaged, or is newer than this toolq. It is left unchanged.
    pub fn open(
        path: &Path,
        mut visit: impl FnMut(&Record, u64) -> Result<(), Corruption>,
    ) -> Result<Self, LogError> {
        let file = lock::open_and_lock(path)?;
        let mut records = RecordReader::from_file(
            file.try_clone()
                .map_err(|source| read_error(path, source))?,
        );
        let (mut is_unfinished, mut torn_end) = (false, None);
        while let Some(record) = records.next_borrowed() {
            match record {
                Ok(record) => {
                    is_unfinished = record.kind.leaves_run_open(is_unfinished);
                    visit(&record, record.end_offset)
                        .map_err(|corruption| LogError::from_corruption(path, corruption))?;
                }
                Err(corruption) => {
                    let end = TornEnd::from_corruption(corruption)
                        .map_err(|corruption| LogError::from_corruption(path, corruption))?;
                    torn_end = Some(end);
                }
            }
        }
        if let Some(FormatVersion { major, minor }) = records.newer_format() {
            let path = path.to_owned();
            return Err(LogError::NewerFormat { path, major, minor });
        }
        Ok(Self {
            path: path.to_owned(),
            record_count: records.record_count(),
            whole_bytes: records.offset(),
            locked_file: file,
            torn_end,
            is_unfinished,
            replica: None,
        })
    }

    /// Like [`Self::open`], for a path that toolq chose (see [`super::default_log_path`]): creates its parent
    /// directories.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_default(
        path: &Path,
        visit: impl FnMut(&Record, u64) -> Result<(), Corruption>,
    ) -> Result<Self, LogError> {
        lock::create_parent_dir(path)?;
        Self::open(path, visit)
    }

    /// Returns whether the log has no records yet.
    pub fn has_no_records(&self) -> bool {
        self.record_count == 0
    }

    /// Removes the file if nothing was ever recorded in it, since no session is going to begin.
    pub(crate) fn discard_if_empty(self) {
        if self.has_no_records() && self.torn_end.is_none() {
            // A file that stays is only untidy: it says nothing about any call.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Returns whether the last run has no end, for example because toolq was killed.
    pub fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    /// Makes new records go to a second place, which has the existing ones.
    pub(crate) fn set_replica(&mut self, replica: Box<dyn LogReplica>) {
        self.replica = Some(replica);
    }

    /// Returns the path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a message for the user if the log's file system may break its promises.
    pub fn durability_warning(&self) -> Option<String> {
        let file_system = unreliable_file_system(&self.path)?;
        let path = self.path.display();
        Some(format!(
            "the session log {path} is on {file_system}, which may lose synced writes in a crash"
        ))
    }

    /// Returns a second descriptor of the file, for reading.
    pub(crate) fn clone_file(&self) -> Result<File, LogError> {
        let file = self.locked_file.try_clone();
        file.map_err(|source| read_error(&self.path, source))
    }

    /// Sets a torn end aside, and begins a session after the existing records. `history` is the task that it resumes,
    /// if any.
    ///
    /// # Errors
    /// The log can't be written.
    pub fn begin_session(
        self,
        header: &SessionHeader,
        history: Option<Arc<TaskHistory>>,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<SessionLog, LogError> {
        let path = self.path.clone();
        let session_log = if self.has_no_records() {
            let (journal, recovered) = self.recover(clock)?;
            begin_first_session(journal, recovered, header, mask)
        } else {
            let (journal, recovered) = self.into_journal(clock)?;
            SessionLog::begin(journal, header, history, mask)
                .map(|log| log.with_recovered(recovered))
        };
        session_log.map_err(|source| write_error(&path, source))
    }

    /// Sets a torn end aside. Returns a journal that appends after the existing records, and what was set aside.
    pub(crate) fn into_journal(
        self,
        clock: Clock,
    ) -> Result<(Journal, Vec<RecoveredRecord>), LogError> {
        let (mut journal, recovered) = self.recover(clock)?;
        let appended = recover::append_recovered_records(&mut journal, &recovered);
        appended.map_err(|source| write_error(journal.path(), source))?;
        Ok((journal, recovered))
    }

    fn recover(self, clock: Clock) -> Result<(Journal, Vec<RecoveredRecord>), LogError> {
        let Self {
            path,
            locked_file: file,
            record_count,
            whole_bytes,
            torn_end,
            replica,
            ..
        } = self;
        let recovered =
            recover::set_aside_torn_end(&path, &file, record_count, whole_bytes, torn_end.as_ref());
        let recovered = recovered.map_err(|source| write_error(&path, source))?;
        let disk = DiskFile::new(file, &path);
        let file = match replica {
            Some(replica) => {
                LogFile::new(ReplicatedFile::new(disk, replica, whole_bytes), whole_bytes)
            }
            None => LogFile::new(disk, whole_bytes),
        };
        Ok((Journal::new(path, file, record_count, clock), recovered))
    }
}

/// Begins the first session of a log. The first record must be a session, so a torn first line is reported after it.
fn begin_first_session(
    journal: Journal,
    recovered: Vec<RecoveredRecord>,
    header: &SessionHeader,
    mask: Arc<Mask>,
) -> io::Result<SessionLog> {
    let mut log = SessionLog::begin(journal, header, None, mask)?;
    recover::append_recovered_records(&mut log.journal, &recovered)?;
    sync_parent(log.path())?;
    Ok(log.with_recovered(recovered))
}

fn read_error(path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        path: path.to_owned(),
        action: "read",
        source,
    }
}

fn write_error(path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        path: path.to_owned(),
        action: "written",
        source,
    }
}
