//! The log file as the journal sees it: whole records are appended, or nothing.

use std::fs::File;
use std::io::{self, Write as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::sessions::is_file_at;
use toolq_core::os::{failpoint, failpoint_midway};

/// A log file to which whole records are appended, or nothing.
pub(crate) struct LogFile {
    storage: Arc<dyn Storage>,
    /// Size of the whole records in bytes.
    pub(crate) whole_bytes: u64,
}

impl LogFile {
    /// Wraps a file of `whole_bytes` bytes, which must all belong to whole records.
    pub(crate) fn new(storage: Arc<dyn Storage>, whole_bytes: u64) -> Self {
        Self {
            storage,
            whole_bytes,
        }
    }

    /// Appends whole lines with a single write, so that no reader sees part of them and a kill of this process leaves
    /// no part of them behind. If only part of them can be written, that part is removed again.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        // A write that was cut short by a signal succeeds the second time. On a full disk, both attempts fail.
        for _ in 0..2 {
            let written = self.write_uninterrupted(lines);
            if let Ok(written) = written
                && written == lines.len()
            {
                self.whole_bytes += written as u64;
                return Ok(());
            }
            self.storage.truncate(self.whole_bytes)?;
            written?;
        }
        Err(self.short_write_error(lines))
    }

    /// Checks that no other process deleted, replaced, truncated or wrote the file.
    pub(crate) fn check_unchanged(&self) -> io::Result<()> {
        match self.storage.len()? {
            len if len == self.whole_bytes => Ok(()),
            _ => Err(io::Error::other("another process changed it")),
        }
    }

    fn write_uninterrupted(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.storage.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    /// Finds out why a write was cut short by writing the rest, which returns the error.
    fn short_write_error(&mut self, lines: &[u8]) -> io::Error {
        let mut remaining = lines;
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

/// A file on disk.
pub(crate) struct DiskFile {
    file: File,
    path: PathBuf,
}

impl DiskFile {
    pub(crate) fn new(file: File, path: &Path) -> Self {
        Self {
            file,
            path: path.to_owned(),
        }
    }
}

impl Storage for DiskFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        failpoint("append.before")?;
        failpoint_midway("append.half", || {
            let _ = (&self.file).write(&bytes[..bytes.len() / 2]);
        });
        let written = (&self.file).write(bytes)?;
        failpoint("append.after")?;
        Ok(written)
    }

    fn sync(&self) -> io::Result<()> {
        failpoint("sync.before")?;
        self.file.sync_data()?;
        failpoint("sync.after")
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
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

// A log file whose records also go to a second place, such as a stream on another machine.

/// A second place for the records of a log. What they promise may happen as soon as they are there, so this place decides,
/// and not the disk.
pub trait LogReplica: Send {
    /// Stores whole lines after those that were stored before. Returns once they are durable.
    ///
    /// # Errors
    /// They weren't stored, or it is unknown whether they were. No more records may be written after this.
    fn store(&mut self, lines: &[u8]) -> io::Result<()>;
}

/// A file on disk that is synced by passing what was written to a replica.
pub(crate) struct ReplicatedFile {
    file: DiskFile,
    replica: Mutex<Box<dyn LogReplica>>,
    unreplicated: Mutex<Unreplicated>,
}

/// What the replica doesn't have.
struct Unreplicated {
    /// Where it begins in the file.
    offset: u64,
    bytes: Vec<u8>,
}

impl ReplicatedFile {
    /// Wraps a file of which the replica has the first `replicated_bytes` bytes.
    pub(crate) fn new(file: DiskFile, replica: Box<dyn LogReplica>, replicated_bytes: u64) -> Self {
        Self {
            file,
            replica: Mutex::new(replica),
            unreplicated: Mutex::new(Unreplicated {
                offset: replicated_bytes,
                bytes: Vec::new(),
            }),
        }
    }
}

impl Storage for ReplicatedFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut unreplicated = self.unreplicated.lock();
        let written = self.file.write(bytes)?;
        unreplicated.bytes.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn sync(&self) -> io::Result<()> {
        let mut replica = self.replica.lock();
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
        self.file.truncate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
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
        let disk = DiskFile::new(file, &path);
        let log = ReplicatedFile::new(disk, Box::new(replica.clone()), 0);
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
