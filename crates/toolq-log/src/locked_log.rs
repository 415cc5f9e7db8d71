//! Opens a log to continue it: locks it, and verifies it from the first record to the last. Nothing is written until a
//! session begins; then a torn end is set aside first.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use crate::claims::{Made, Settlement};
use crate::error::LogError;
use crate::memory::{CallInDoubt, LogIndex, MemoryUse, RememberedIn, SettleError, find_call};
use crate::reader::MAX_TORN_BYTES;
use crate::records::{
    FormatVersion, RecordKind, RecoveredRecord, ResolveRecord, SessionRecord, sha256_hex,
    write_file_atomically,
};
use crate::sessions;
use crate::write::{DiskFile, Journal, LogReplica, SessionLog, unreliable_file_system};
use redact::Mask;
use toolq_core::os::{Clock, failpoint};

/// A log that no other toolq can write to, and whose records are all intact.
pub struct LockedLog {
    path: PathBuf,
    locked_file: File,
    index: LogIndex,
    /// The size of what is after the last whole record, in bytes.
    torn_end: Option<u64>,
    /// The second place of all records, if there is one.
    replica: Option<Box<dyn LogReplica>>,
}

impl LockedLog {
    /// Opens the log at `path`, or creates an empty one; its directory must exist. Writes nothing.
    ///
    /// # Errors
    /// The file can't be a log, is in use, is damaged, or is newer than this toolq. It is left unchanged.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = sessions::open_and_lock(path)?;
        let read_error = LogError::io(path, "read");
        let mut index = LogIndex::from_file(path, file.try_clone().map_err(read_error)?)?;
        let torn_end = index.read_to_end()?;
        if let Some(FormatVersion { major, minor }) = index.reader.newer_format() {
            let path = path.to_owned();
            return Err(LogError::NewerFormat { path, major, minor });
        }
        if index.reader.record_count() > 0 {
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
        sessions::create_parent_dir(path)?;
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
        session: SessionRecord,
        memory: (RememberedIn, MemoryUse),
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<SessionLog, LogError> {
        let path = self.path.clone();
        self.begin(session, memory, mask, clock)
            .map_err(LogError::io(&path, "written"))
    }

    /// Sets a torn end aside, appends how a call was settled, whose `tool_call` is `record`, and waits until that is durable.
    fn append_settlement(
        self,
        record: Option<Uuid>,
        (fields, result): (&ResolveRecord<'_>, &Option<Value>),
        clock: Clock,
    ) -> Result<(), LogError> {
        let path = self.path.clone();
        let append = || {
            let (journal, recovered, ..) = self.continue_log(clock)?;
            append_recovered_records(&journal, &recovered)?;
            journal.append(RecordKind::Resolve, record, (result, fields), false)?;
            journal.shared.write()?;
            journal.sync().map_err(io::Error::other)
        };
        append().map_err(LogError::io(&path, "written"))
    }

    /// Sets a torn end aside. Returns what appends records after the existing ones, what was set aside and isn't on record yet, and the
    /// rest of the log.
    fn continue_log(
        self,
        clock: Clock,
    ) -> io::Result<(Journal, Vec<RecoveredRecord>, LogIndex, OwnedFd)> {
        let (seq, whole_bytes) = (self.index.reader.record_count(), self.index.reader.offset());
        let (path, file, torn_end) = (self.path, self.locked_file, self.torn_end);
        let recovered = set_aside_torn_end(&path, &file, seq, whole_bytes, torn_end)?;
        let lock = file.try_clone()?.into();
        let storage = Arc::new(DiskFile::new(file, &path, self.replica, whole_bytes));
        let journal = Journal::new(path, storage, (seq, whole_bytes), clock)?;
        Ok((journal, recovered, self.index, lock))
    }

    fn begin(
        self,
        session: SessionRecord,
        memory: (RememberedIn, MemoryUse),
        mask: Arc<Mask>,
        clock: Clock,
    ) -> io::Result<SessionLog> {
        let (journal, recovered, index, lock) = self.continue_log(clock)?;
        let is_new = index.reader.record_count() == 0;
        if !is_new {
            append_recovered_records(&journal, &recovered)?;
        }
        let opened = (recovered, Some(lock));
        let log = SessionLog::begin(journal, session, memory, mask, index, opened)?;
        if is_new {
            // The first record must be a session, so a torn first line is reported after it.
            append_recovered_records(&log.recorder().journal, log.recovered())?;
        }
        Ok(log)
    }
}

// Says what became of a call in doubt.

/// Records what became of the call in doubt that `id` names in one of `logs`, or by its key. The first who says so is right.
///
/// # Errors
/// No such call is in doubt, or it was settled before.
pub fn settle_call(
    id: &str,
    logs: &[PathBuf],
    place: &RememberedIn,
    settlement: &Settlement,
) -> Result<CallInDoubt, SettleError> {
    let (store, call) = find_call(id, logs, place)?;
    match store.make_entry(|entries| entries.settle(&call.name, settlement))? {
        Made::New => {
            if store.is_own_log() {
                // The entry decides. The record tells those who read only the log, so it may be missing.
                let _ = append_settlement(&call, &call.log, settlement, Clock::system());
            }
            Ok(call)
        }
        Made::Existed(earlier) => Err(SettleError::Settled {
            id: id.to_owned(),
            earlier: Box::new(earlier),
        }),
    }
}

/// As [`settle_call`], as a record of a log that is the memory and that no run holds.
///
/// # Errors
/// Those of [`settle_call`].
pub fn record_settlement(
    id: &str,
    log: &Path,
    settlement: &Settlement,
    clock: Clock,
) -> Result<(), SettleError> {
    let (_, call) = find_call(id, &[log.to_owned()], &RememberedIn::log(log))?;
    Ok(append_settlement(&call, log, settlement, clock)?)
}

fn append_settlement(
    call: &CallInDoubt,
    log: &Path,
    settlement: &Settlement,
    clock: Clock,
) -> Result<(), LogError> {
    let locked = LockedLog::open(log)?;
    let fields = ResolveRecord::new((&*call.tool_use_id, &*call.tool), &call.name, settlement);
    locked.append_settlement(call.record, (&fields, &settlement.result), clock)
}

// Sets the torn end of a log aside. Nothing ever acted on a torn record: a call starts only after the write of its
// start record has completed.
//
// 1. The torn bytes are copied to `LOG.torn-SEQ`, a file that gets its name only when it is complete.
// 2. The log is truncated after its last whole record.
// 3. A `recovered` record is appended and synced.
//
// If toolq is killed between two of these steps, the next open recovers the log in the same way: a copy that has no
// record yet gets one.

/// Copies the torn end of `file`, which begins after the first `whole_bytes` bytes in the place of record `seq`, and
/// truncates the file. Returns everything that was set aside and isn't recorded in the log yet, including copies of an
/// earlier recovery that was interrupted.
fn set_aside_torn_end(
    path: &Path,
    file: &File,
    seq: u64,
    whole_bytes: u64,
    torn_end: Option<u64>,
) -> io::Result<Vec<RecoveredRecord>> {
    let (mut recovered, names_taken) = find_torn_copies(path, seq)?;
    let Some(bytes) = torn_end else {
        return Ok(recovered);
    };
    let mut dropped = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut dropped, whole_bytes)?;
    let name = torn_copy_name(path, seq, names_taken);
    let copy = recovered_fields(&name, &dropped);
    // An earlier recovery may have made the copy without getting to the truncation.
    let last = recovered.last();
    if last.is_none_or(|last| last.sha256 != copy.sha256) {
        write_file_atomically(&path.with_file_name(&name), &dropped)?;
        recovered.push(copy);
    }
    failpoint("recover.copied")?;
    file.set_len(whole_bytes)?;
    file.sync_data()?;
    failpoint("recover.cut")?;
    Ok(recovered)
}

/// Appends the records of what was set aside.
fn append_recovered_records(journal: &Journal, recovered: &[RecoveredRecord]) -> io::Result<()> {
    if recovered.is_empty() {
        return Ok(());
    }
    for fields in recovered {
        journal.append(RecordKind::Recovered, None, (&(), fields), false)?;
    }
    journal.shared.write()?;
    journal.sync().map_err(io::Error::other)?;
    failpoint("recover.noted")
}

/// Finds the copies of torn ends in the place of record `seq`, and counts how many of their names are taken. A file
/// that doesn't begin like that record isn't such a copy.
fn find_torn_copies(path: &Path, seq: u64) -> io::Result<(Vec<RecoveredRecord>, usize)> {
    let (mut found, mut names_taken) = (Vec::new(), 0);
    loop {
        let name = torn_copy_name(path, seq, names_taken);
        let copy = path.with_file_name(&name);
        match std::fs::symlink_metadata(&copy) {
            Ok(metadata) if metadata.len() > MAX_TORN_BYTES => {
                names_taken += 1;
                continue;
            }
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => {
                return Err(io::Error::other(format!(
                    "{} is in the way: it isn't a regular file",
                    copy.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((found, names_taken));
            }
            Err(error) => return Err(error),
        }
        let bytes = std::fs::read(&copy)?;
        if may_be_torn_end(&bytes, seq) {
            found.push(recovered_fields(&name, &bytes));
        }
        names_taken += 1;
    }
}

/// Returns whether these bytes may be what is left of record `seq`. Data that never reached the disk reads as zeros.
fn may_be_torn_end(bytes: &[u8], seq: u64) -> bool {
    let prefix = format!("{{\"seq\":{seq},");
    let len = bytes.len().min(prefix.len());
    bytes.first() == Some(&0) || bytes[..len] == prefix.as_bytes()[..len]
}

fn recovered_fields(name: &OsString, dropped: &[u8]) -> RecoveredRecord {
    RecoveredRecord {
        dropped_bytes: dropped.len() as u64,
        sha256: sha256_hex(dropped),
        file: name.to_string_lossy().into_owned(),
    }
}

/// Returns `LOG.torn-SEQ`, or `LOG.torn-SEQ.N` if there are earlier copies.
fn torn_copy_name(path: &Path, seq: u64, earlier_copies: usize) -> OsString {
    let mut name = PathBuf::from(path)
        .file_name()
        .unwrap_or_default()
        .to_owned();
    name.push(format!(".torn-{seq}"));
    if earlier_copies > 0 {
        name.push(format!(".{earlier_copies}"));
    }
    name
}
