use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolq_core::os::{failpoint, failpoint_within};

/// What a log stands on: a file that grows at its end. Tests put one below a log that fails.
pub(crate) trait Storage: Send {
    /// Adds bytes at the end by one write(2) and returns how many were taken.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns when all that was written survives a loss of power. After an error nobody knows what does: the system
    /// forgets what it could not write, so there is no second try.
    fn sync(&mut self) -> io::Result<()>;

    /// Takes away what stands behind the first `len` bytes.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// How many bytes the file has, if it still is the one of its name.
    fn len(&self) -> io::Result<u64>;
}

/// A file.
pub(crate) struct Disk {
    file: File,
    path: PathBuf,
}

impl Disk {
    pub(crate) fn new(file: File, path: &Path) -> Self {
        Self {
            file,
            path: path.to_owned(),
        }
    }
}

impl Storage for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        failpoint("append.before")?;
        failpoint_within("append.half", || {
            let _ = self.file.write(&bytes[..bytes.len() / 2]);
        });
        let written = self.file.write(bytes)?;
        failpoint("append.after")?;
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        failpoint("sync.before")?;
        self.file.sync_data()?;
        failpoint("sync.after")
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        let ours = self.file.metadata()?;
        if !is_at(&ours, &self.path) {
            return Err(io::Error::other("it was deleted or replaced"));
        }
        Ok(ours.len())
    }
}

/// Whether this file is the one of the name.
pub(crate) fn is_at(file: &std::fs::Metadata, path: &Path) -> bool {
    let named = std::fs::symlink_metadata(path);
    named.is_ok_and(|named| (named.dev(), named.ino()) == (file.dev(), file.ino()))
}

/// Returns when the names in a folder survive a loss of power.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let here = Path::new(".");
    let folder = if folder.as_os_str().is_empty() {
        here
    } else {
        folder
    };
    match File::open(folder)?.sync_all() {
        // A file system that has nothing to do for a folder may say so.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}
