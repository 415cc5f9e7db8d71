//! The log file as the journal sees it: whole records are appended, or nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::write::storage::Storage;

/// A log file to which whole records are appended, or nothing.
pub(crate) struct LogFile {
    storage: Arc<dyn Storage>,
    /// Size of the whole records in bytes.
    whole_bytes: u64,
}

impl LogFile {
    /// Wraps a file of `whole_bytes` bytes, which must all belong to whole records.
    pub(crate) fn new(storage: Arc<dyn Storage>, whole_bytes: u64) -> Self {
        Self {
            storage,
            whole_bytes,
        }
    }

    /// Returns the size of the whole records in bytes.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.whole_bytes
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
