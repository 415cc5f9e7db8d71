//! Appends records to a log, and decides when they are written and synced.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use uuid::{Builder, Uuid};

use crate::MAX_RECORD_BYTES;
use crate::open::blob_dir_for;
use crate::records::line;
use crate::records::{RecordHeader, RecordKind, StoredBlob};
use crate::write::blob_store::BlobStore;
use crate::write::log_file::LogFile;
use toolq_core::os::Clock;

/// Appends records to the end of a log. It knows how a record is written, not what it means.
///
/// Appended records are buffered and written together, as many as fit into one write. Nothing is written before
/// [`Journal::commit`], unless the buffer is full. After an error, the file must not be written again.
pub(crate) struct Journal {
    path: PathBuf,
    file: LogFile,
    blob_store: BlobStore,
    /// How many records the file has, with those that aren't written yet.
    record_count: u64,
    clock: Clock,
    /// The line being composed; kept to reuse its allocation.
    line: Vec<u8>,
    /// Complete lines that haven't been written yet.
    pending: Vec<u8>,
    /// Whether something was written that must survive a power loss before anyone reads a result.
    needs_sync: bool,
}

/// When a record must survive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// Whenever the system writes it to the disk.
    Lazy,
    /// Before anyone reads a result.
    BeforeDelivery,
    /// Before [`Journal::commit`] returns.
    Immediate,
}

impl Journal {
    /// Creates a journal that continues `file`, the log at `path`, which has this many records.
    pub(crate) fn new(path: PathBuf, file: LogFile, record_count: u64, clock: Clock) -> Self {
        Self {
            blob_store: BlobStore::new(blob_dir_for(&path)),
            path,
            file,
            record_count,
            clock,
            line: Vec::with_capacity(4 << 10),
            pending: Vec::with_capacity(4 << 10),
            needs_sync: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how many records the file has, with those that aren't written yet.
    pub(crate) fn record_count(&self) -> u64 {
        self.record_count
    }

    /// Returns the directory for content that is too large for a record.
    pub(crate) fn blob_dir(&self) -> &Path {
        self.blob_store.dir()
    }

    /// Returns the current time in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Appends a record below `parent` and returns its id.
    pub(crate) fn append<C: Serialize, M: Serialize>(
        &mut self,
        kind: &RecordKind,
        parent: Option<Uuid>,
        content: &C,
        metadata: &M,
    ) -> io::Result<Uuid> {
        let timestamp = self.now_ms();
        let id = generate_id(timestamp)?;
        let header = RecordHeader {
            seq: self.record_count,
            id,
            parent,
            timestamp,
            kind,
        };
        compose_line(&mut self.line, &header, content, metadata, &self.blob_store)?;
        if self.pending.len() + self.line.len() > MAX_RECORD_BYTES {
            self.write_pending()?;
        }
        self.pending.extend_from_slice(&self.line);
        self.record_count += 1;
        Ok(id)
    }

    /// Stores a value that doesn't fit into a record in a file in the blob directory.
    pub(crate) fn store_blob(&self, content: &impl Serialize) -> io::Result<StoredBlob> {
        self.blob_store.store(content)
    }

    /// Writes the appended records, and syncs them if they must be durable immediately.
    pub(crate) fn commit(&mut self, durability: Durability) -> io::Result<()> {
        if durability > Durability::Lazy {
            self.check_file()?;
        }
        self.write_pending()?;
        self.needs_sync |= durability > Durability::Lazy;
        match durability {
            Durability::Immediate => self.flush(),
            _ => Ok(()),
        }
    }

    /// Syncs records that must be durable before anyone reads a result, if there are any.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.needs_sync {
            self.file.sync()?;
            self.needs_sync = false;
        }
        Ok(())
    }

    /// Checks that the file is still in place. This has to be done before a call starts or its result is written, since
    /// afterwards it is too late to find out that the record is in a file that is gone.
    pub(crate) fn check_file(&self) -> io::Result<()> {
        self.file.check_unchanged()
    }

    fn write_pending(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.file.append(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }
}

/// Generates a UUID version 7 (RFC 9562). Its random part comes from the system, since idempotency keys are derived from
/// the id of a session: two tasks must never share one.
fn generate_id(timestamp: u64) -> io::Result<Uuid> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(Builder::from_unix_timestamp_millis(timestamp, &random).into_uuid())
}

/// How the content of a line begins if it refers to a file. Other content may begin like this, too.
const BLOB_REF_CONTENT: &[u8] = br#","content":{"$file""#;

/// Composes the line of a record. Content that makes it too large, or that would be mistaken for a reference to a file,
/// is stored in a file.
fn compose_line<C: Serialize, M: Serialize>(
    line: &mut Vec<u8>,
    header: &RecordHeader<'_>,
    content: &C,
    metadata: &M,
    blob_store: &BlobStore,
) -> io::Result<()> {
    line::write_sealed_line(line, header, content, metadata)?;
    if line.len() <= MAX_RECORD_BYTES && memchr::memmem::find(line, BLOB_REF_CONTENT).is_none() {
        return Ok(());
    }
    let content = blob_store.store(content)?;
    line::write_sealed_line(line, header, &content, metadata)?;
    if line.len() <= MAX_RECORD_BYTES {
        return Ok(());
    }
    Err(io::Error::other("the metadata of a record is too large"))
}
