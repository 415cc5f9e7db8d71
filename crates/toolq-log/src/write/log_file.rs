//! The log file as the journal sees it: whole records are appended, or nothing.

use std::fs::File;
use std::io::{self, Write as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use crate::MAX_RECORD_BYTES;
use crate::records::NewRecord;
use crate::records::record::write_sealed_line;
use crate::sessions::is_file_at;
use toolq_core::os::{failpoint, failpoint_midway};

/// A log file to which whole records are appended, or nothing.
pub(super) struct LogFile {
    storage: Arc<dyn Storage>,
    /// Size of the whole records in bytes.
    whole_bytes: u64,
    /// The number of the next record.
    seq: u64,
    /// The line being composed; kept to reuse its allocation.
    line: Vec<u8>,
    /// Complete lines that haven't been written yet.
    pending: Vec<u8>,
}

/// How the content of a line begins if it refers to a file. Other content may begin like this, too.
const BLOB_REF_CONTENT: &[u8] = br#","content":{"$file""#;

impl LogFile {
    /// Wraps a file of `whole_bytes` bytes, which must all belong to whole records. Record `seq` is next.
    pub(super) fn new(storage: Arc<dyn Storage>, (seq, whole_bytes): (u64, u64)) -> Self {
        Self {
            storage,
            whole_bytes,
            seq,
            line: Vec::with_capacity(4 << 10),
            pending: Vec::with_capacity(4 << 10),
        }
    }

    /// Returns how many records the file has, with those that aren't written yet.
    pub(super) fn record_count(&self) -> u64 {
        self.seq
    }

    /// Returns the size of the whole records in bytes.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    /// Appends a record. Returns its offset, or `None` if its content has to be stored in a file: because it is too large, or because
    /// it would be mistaken for a reference to one, unless it `is_reference`.
    pub(super) fn append<C: Serialize, M: Serialize>(
        &mut self,
        record: &mut NewRecord<C, M>,
        is_reference: bool,
    ) -> io::Result<Option<u64>> {
        record.seq = self.seq;
        write_sealed_line(&mut self.line, record)?;
        let is_too_large = self.line.len() > MAX_RECORD_BYTES;
        let looks_like_reference = || memchr::memmem::find(&self.line, BLOB_REF_CONTENT).is_some();
        if is_too_large || !is_reference && looks_like_reference() {
            return Ok(None);
        }
        if self.pending.len() + self.line.len() > MAX_RECORD_BYTES {
            self.write_pending()?;
        }
        let offset = self.whole_bytes + self.pending.len() as u64;
        self.pending.extend_from_slice(&self.line);
        self.seq += 1;
        Ok(Some(offset))
    }

    /// Writes the appended records with a single write, so that no reader sees part of them and a kill of this process leaves
    /// no part of them behind. If only part of them can be written, that part is removed again, and none is written later: who waits
    /// for them has been told so.
    pub(super) fn write_pending(&mut self) -> io::Result<()> {
        let written = self.write_whole();
        self.pending.clear();
        written
    }

    fn write_whole(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        // A write that was cut short by a signal succeeds the second time. On a full disk, both attempts fail.
        for _ in 0..2 {
            let written = self.write_uninterrupted(&self.pending);
            if let Ok(written) = written
                && written == self.pending.len()
            {
                self.whole_bytes += written as u64;
                return Ok(());
            }
            self.storage.truncate(self.whole_bytes)?;
            written?;
        }
        Err(self.short_write_error())
    }

    /// Checks that no other process deleted, replaced, truncated or wrote the file.
    pub(super) fn check_unchanged(&self) -> io::Result<()> {
        match self.storage.len()? {
            len if len == self.whole_bytes => Ok(()),
            _ => Err(io::Error::other("another process changed it")),
        }
    }

    fn write_uninterrupted(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.storage.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    /// Finds out why a write was cut short by writing the rest, which returns the error.
    fn short_write_error(&self) -> io::Error {
        let mut remaining = &*self.pending;
        let cause = loop {
            match self.write_uninterrupted(remaining) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(written) => remaining = &remaining[written.min(remaining.len())..],
                Err(error) => break error,
            }
            if remaining.is_empty() {
                break io::ErrorKind::StorageFull.into();
            }
        };
        // If this fails, the next open finds a torn end and recovers the log.
        let _ = self.storage.truncate(self.whole_bytes);
        cause
    }
}

/// Returns the name of the file system at `path`, if it is one that may lose synced writes.
pub(crate) fn unreliable_file_system(path: &Path) -> Option<&'static str> {
    let stat = rustix::fs::statfs(path).ok()?;
    unreliable_file_system_name(u64::try_from(stat.f_type).unwrap_or_default() & 0xffff_ffff)
}

/// Looks up a magic number from linux/magic.h.
fn unreliable_file_system_name(magic: u64) -> Option<&'static str> {
    match magic {
        0x6969 => Some("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("SMB"),
        0x0102_1997 => Some("9p"),
        0x6573_5546 => Some("FUSE"),
        0x5346_414f => Some("AFS"),
        _ => None,
    }
}

// The storage that a log is written to.

/// A file that grows at its end. It may be written while it is synced. Tests substitute one that fails.
pub(crate) trait Storage: Send + Sync {
    /// Appends bytes with a single write(2) and returns how many were written.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Blocks until everything written before survives a power loss. After an error, there must be no second attempt: the
    /// kernel may have dropped the data it couldn't write, so that a later success would mean nothing.
    fn sync(&self) -> io::Result<()>;

    /// Removes everything after the first `len` bytes.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Returns the size of the file in bytes. Fails if the path no longer leads to this file.
    fn len(&self) -> io::Result<u64>;
}

/// A second place for the records of a log, such as a stream on another machine. What they promise may happen as soon as they are
/// there, so this place decides, and not the disk.
pub trait LogReplica: Send {
    /// Stores whole lines after those that were stored before. Returns once they are durable.
    ///
    /// # Errors
    /// They weren't stored, or it is unknown whether they were. No more records may be written after this.
    fn store(&mut self, lines: &[u8]) -> io::Result<()>;
}

/// A file on disk.
pub(crate) struct DiskFile {
    file: File,
    path: PathBuf,
    /// What is synced in place of the file.
    replica: Option<Mutex<Box<dyn LogReplica>>>,
    unreplicated: Mutex<Unreplicated>,
}

/// What the replica doesn't have.
struct Unreplicated {
    /// Where it begins in the file.
    offset: u64,
    bytes: Vec<u8>,
}

impl DiskFile {
    /// Wraps a file of which the replica, if there is one, has the first `replicated_bytes` bytes.
    pub(crate) fn new(
        file: File,
        path: &Path,
        replica: Option<Box<dyn LogReplica>>,
        replicated_bytes: u64,
    ) -> Self {
        Self {
            file,
            path: path.to_owned(),
            replica: replica.map(Mutex::new),
            unreplicated: Mutex::new(Unreplicated {
                offset: replicated_bytes,
                bytes: Vec::new(),
            }),
        }
    }
}

impl Storage for DiskFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut unreplicated = self.unreplicated.lock();
        failpoint("append.before")?;
        failpoint_midway("append.half", || {
            let _ = (&self.file).write(&bytes[..bytes.len() / 2]);
        });
        let written = (&self.file).write(bytes)?;
        failpoint("append.after")?;
        if self.replica.is_some() {
            unreplicated.bytes.extend_from_slice(&bytes[..written]);
        }
        Ok(written)
    }

    fn sync(&self) -> io::Result<()> {
        let Some(replica) = &self.replica else {
            failpoint("sync.before")?;
            self.file.sync_data()?;
            return failpoint("sync.after");
        };
        let mut replica = replica.lock();
        let bytes = {
            let mut unreplicated = self.unreplicated.lock();
            unreplicated.offset += unreplicated.bytes.len() as u64;
            mem::take(&mut unreplicated.bytes)
        };
        if bytes.is_empty() {
            return Ok(());
        }
        replica.store(&bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut unreplicated = self.unreplicated.lock();
        let kept = len.saturating_sub(unreplicated.offset);
        unreplicated
            .bytes
            .truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        let ours = self.file.metadata()?;
        if !is_file_at(&ours, &self.path) {
            return Err(io::Error::other("it was deleted or replaced"));
        }
        Ok(ours.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Network file systems are reported by name, local ones aren't reported.
    #[test]
    fn file_systems_that_may_lose_writes_are_named() {
        assert_eq!(unreliable_file_system_name(0xef53), None);
        assert_eq!(unreliable_file_system_name(0x6969), Some("NFS"));
        assert_eq!(unreliable_file_system_name(0x0102_1997), Some("9p"));
        assert_eq!(unreliable_file_system(Path::new("/proc")), None);
    }
}

#[cfg(test)]
mod replicated_file_tests {
    use std::fs::{self, OpenOptions};
    use std::sync::Arc;

    use super::*;

    /// Keeps what it is given, unless it is broken.
    #[derive(Default, Clone)]
    struct MemoryReplica {
        stored: Arc<Mutex<Vec<u8>>>,
        is_broken: Arc<Mutex<bool>>,
    }

    impl LogReplica for MemoryReplica {
        fn store(&mut self, lines: &[u8]) -> io::Result<()> {
            if *self.is_broken.lock() {
                return Err(io::Error::other("broken"));
            }
            self.stored.lock().extend_from_slice(lines);
            Ok(())
        }
    }

    #[test]
    fn a_sync_stores_what_was_written_since_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).open(&path).unwrap();
        let replica = MemoryReplica::default();
        let log = DiskFile::new(file, &path, Some(Box::new(replica.clone())), 0);
        let stored = || replica.stored.lock().clone();
        log.write(b"one\n").unwrap();
        log.write(b"two\n").unwrap();
        assert!(stored().is_empty());
        log.sync().unwrap();
        assert_eq!(stored(), b"one\ntwo\n");
        // What is taken back before a sync is never stored.
        log.write(b"torn").unwrap();
        log.truncate(8).unwrap();
        log.write(b"three\n").unwrap();
        log.sync().unwrap();
        assert_eq!(stored(), b"one\ntwo\nthree\n");
        assert_eq!(fs::read(&path).unwrap(), stored());
        *replica.is_broken.lock() = true;
        log.write(b"four\n").unwrap();
        assert!(log.sync().is_err());
    }
}
