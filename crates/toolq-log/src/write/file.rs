use std::io;
use std::path::Path;

use crate::write::storage::Storage;

/// The end of a log: whole records are added to it, or nothing.
pub(crate) struct LogFile {
    storage: Box<dyn Storage>,
    /// Bytes of whole records.
    len: u64,
}

impl LogFile {
    /// A file of `len` bytes, all of whole records.
    pub(crate) fn new(storage: impl Storage + 'static, len: u64) -> Self {
        Self {
            storage: Box::new(storage),
            len,
        }
    }

    /// Adds whole lines by one write, so that no reader sees and no death of this process leaves a part of them. What
    /// was written of them in vain is taken away again.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        // A write that was cut short by a signal succeeds the second time; on a full disk neither does.
        for _ in 0..2 {
            let written = self.write(lines);
            if let Ok(written) = written
                && written == lines.len()
            {
                self.len += written as u64;
                return Ok(());
            }
            self.storage.truncate(self.len)?;
            written?;
        }
        Err(self.why_short(lines))
    }

    /// Returns when all records survive a loss of power.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.storage.sync()
    }

    /// Checks that nobody deleted, replaced, cut or wrote the file.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.storage.len()? {
            len if len == self.len => Ok(()),
            _ => Err(io::Error::other("somebody else changed it")),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.storage.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    /// Why a write takes a part only: the next one, of the rest, says it.
    fn why_short(&mut self, lines: &[u8]) -> io::Error {
        let mut left = lines;
        let why = loop {
            match self.write(left) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(written) => left = &left[written.min(left.len())..],
                Err(error) => break error,
            }
            if left.is_empty() {
                break io::ErrorKind::StorageFull.into();
            }
        };
        // What can't be taken away is found torn when the log is opened again.
        let _ = self.storage.truncate(self.len);
        why
    }
}

/// Whether who keeps this file may forget what it was told to keep, and its name.
pub(crate) fn doubtful(path: &Path) -> Option<&'static str> {
    let stat = rustix::fs::statfs(path).ok()?;
    name_of(u64::try_from(stat.f_type).unwrap_or_default() & 0xffff_ffff)
}

/// By the numbers of linux/magic.h.
fn name_of(kind: u64) -> Option<&'static str> {
    match kind {
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

    /// FAULTS 129: a disk of this machine is not warned of; what is far away is.
    #[test]
    fn file_systems_that_may_forget() {
        assert_eq!(name_of(0xef53), None);
        assert_eq!(name_of(0x6969), Some("NFS"));
        assert_eq!(name_of(0x0102_1997), Some("9p"));
        assert_eq!(doubtful(Path::new("/proc")), None);
    }
}
