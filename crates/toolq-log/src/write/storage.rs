//! The storage that a log is written to.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolq_core::os::{failpoint, failpoint_midway};

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

/// Returns whether `path` leads to this file.
pub(crate) fn is_file_at(file: &std::fs::Metadata, path: &Path) -> bool {
    let current = std::fs::symlink_metadata(path);
    current.is_ok_and(|current| (current.dev(), current.ino()) == (file.dev(), file.ino()))
}
