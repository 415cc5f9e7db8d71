//! Opens a log to continue it: locks it, and verifies it from the first record to the last. Nothing is written until a
//! session begins; then a torn end is set aside first.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::error::LogError;
use crate::memory::{LogIndex, MemoryUse, RememberedIn};
use crate::open::lock;
use crate::open::recover;
use crate::open::recover::TornEnd;
use crate::records::{FormatVersion, RecordKind, ResolveRecord, SessionHeader};
use crate::write::{
    DiskFile, Journal, LogReplica, ReplicatedFile, SessionLog, Storage, unreliable_file_system,
};
use redact::Mask;
use toolq_core::os::Clock;

/// A log that no other toolq can write to, and whose records are all intact.
pub struct LockedLog {
    path: PathBuf,
    locked_file: File,
    index: LogIndex,
    torn_end: Option<TornEnd>,
    /// The second place of all records, if there is one.
    replica: Option<Box<dyn LogReplica>>,
}

impl LockedLog {
    /// Opens the log at `path`, or creates an empty one; its directory must exist. Writes nothing.
    ///
    /// # Errors
    /// The file can't be a log, is in use, is damaged, or is newer than this toolq. It is left unchanged.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = lock::open_and_lock(path)?;
        let read_error = |source| LogError::Io {
            path: path.to_owned(),
            action: "read",
            source,
        };
        let mut index = LogIndex::from_file(path, file.try_clone().map_err(read_error)?)?;
        let torn_end = index.read_to_end()?.map(TornEnd::from_corruption);
        let torn_end = torn_end
            .transpose()
            .map_err(|corruption| LogError::from_corruption(path, corruption))?;
        if let Some(FormatVersion { major, minor }) = index.newer_format() {
            let path = path.to_owned();
            return Err(LogError::NewerFormat { path, major, minor });
        }
        if index.record_count() > 0 {
            // What is in it may answer calls. The run that wrote it may not have come to sync it.
            file.sync_data().map_err(read_error)?;
        }
        Ok(Self {
            path: path.to_owned(),
            locked_file: file,
            index,
            torn_end,
            replica: None,
        })
    }

    /// Like [`Self::open`], for a path that toolq chose (see [`super::default_log_path`]): creates its parent
    /// directories.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_default(path: &Path) -> Result<Self, LogError> {
        lock::create_parent_dir(path)?;
        Self::open(path)
    }

    /// Makes the records of the session go to `replica`, which has the existing ones, before what they promise happens. The disk is
    /// then never waited for.
    #[must_use]
    pub fn with_replica(self, replica: Box<dyn LogReplica>) -> Self {
        Self {
            replica: Some(replica),
            ..self
        }
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

    /// Sets a torn end aside, and begins a session after the existing records.
    ///
    /// # Errors
    /// The log can't be written.
    pub fn begin_session(
        self,
        header: &SessionHeader,
        memory: (RememberedIn, MemoryUse),
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<SessionLog, LogError> {
        let path = self.path.clone();
        self.begin(header, memory, mask, clock)
            .map_err(|source| LogError::Io {
                path,
                action: "written",
                source,
            })
    }

    /// Sets a torn end aside, appends how a call was settled, whose `tool_call` is `record`, and waits until that is durable.
    pub(crate) fn append_settlement(
        self,
        record: Option<Uuid>,
        (fields, result): (&ResolveRecord<'_>, &Option<String>),
        clock: Clock,
    ) -> Result<(), LogError> {
        let path = self.path.clone();
        let (seq, whole_bytes) = (self.index.record_count(), self.index.offset());
        let append = || {
            let torn_end = self.torn_end.as_ref();
            let recovered =
                recover::set_aside_torn_end(&path, &self.locked_file, seq, whole_bytes, torn_end)?;
            let storage = Arc::new(DiskFile::new(self.locked_file, &path));
            let journal = Journal::new(path.clone(), storage, (seq, whole_bytes), clock)?;
            recover::append_recovered_records(&journal, &recovered)?;
            journal.append(RecordKind::Resolve, record, (result, fields), false)?;
            journal.write()?;
            journal.sync().map_err(io::Error::other)
        };
        append().map_err(|source| LogError::Io {
            path: path.clone(),
            action: "written",
            source,
        })
    }

    fn begin(
        self,
        header: &SessionHeader,
        memory: (RememberedIn, MemoryUse),
        mask: Arc<Mask>,
        clock: Clock,
    ) -> io::Result<SessionLog> {
        let Self {
            path,
            locked_file: file,
            index,
            torn_end,
            replica,
        } = self;
        let (seq, whole_bytes) = (index.record_count(), index.offset());
        let recovered =
            recover::set_aside_torn_end(&path, &file, seq, whole_bytes, torn_end.as_ref())?;
        let lock = file.try_clone()?.into();
        let disk = DiskFile::new(file, &path);
        let storage: Arc<dyn Storage> = match replica {
            Some(replica) => Arc::new(ReplicatedFile::new(disk, replica, whole_bytes)),
            None => Arc::new(disk),
        };
        let journal = Journal::new(path, storage, (seq, whole_bytes), clock)?;
        if seq > 0 {
            recover::append_recovered_records(&journal, &recovered)?;
        }
        let log = SessionLog::begin(journal, header, memory, mask, index)?;
        if seq == 0 {
            // The first record must be a session, so a torn first line is reported after it.
            recover::append_recovered_records(&log.recorder().journal, &recovered)?;
        }
        Ok(log.with_opened(recovered, lock))
    }
}
