//! A log file whose records also go to a second place, such as a stream on another machine.

use std::io;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::write::storage::{DiskFile, Storage};

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

    fn unreplicated(&self) -> MutexGuard<'_, Unreplicated> {
        self.unreplicated
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for ReplicatedFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut unreplicated = self.unreplicated();
        let written = self.file.write(bytes)?;
        unreplicated.bytes.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn sync(&self) -> io::Result<()> {
        let mut replica = self.replica.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = {
            let mut unreplicated = self.unreplicated();
            unreplicated.offset += unreplicated.bytes.len() as u64;
            mem::take(&mut unreplicated.bytes)
        };
        if bytes.is_empty() {
            return Ok(());
        }
        replica.store(&bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut unreplicated = self.unreplicated();
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
            if *self.is_broken.lock().unwrap() {
                return Err(io::Error::other("broken"));
            }
            self.stored.lock().unwrap().extend_from_slice(lines);
            Ok(())
        }
    }

    #[test]
    fn a_sync_stores_what_was_written_since_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut options = std::fs::OpenOptions::new();
        let file = options.append(true).create_new(true).open(&path).unwrap();
        let replica = MemoryReplica::default();
        let disk = DiskFile::new(file, &path);
        let log = ReplicatedFile::new(disk, Box::new(replica.clone()), 0);
        let stored = || replica.stored.lock().unwrap().clone();
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
        assert_eq!(std::fs::read(&path).unwrap(), stored());
        *replica.is_broken.lock().unwrap() = true;
        log.write(b"four\n").unwrap();
        assert!(log.sync().is_err());
    }
}
