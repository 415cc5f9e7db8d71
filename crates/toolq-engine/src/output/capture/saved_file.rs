//! Saves the complete text of an output that was cut, so that the rest can be read from a file.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::digests::hex_digest;
use toolq_core::os::create_private_dir;

/// A file that is being written. It is removed if it is dropped without [`Self::persist`].
#[derive(Debug)]
pub(crate) struct SavedFile {
    file: NamedTempFile,
    dir: PathBuf,
    digest: Sha256,
    /// How many more bytes may be written.
    remaining_bytes: u64,
}

impl SavedFile {
    /// Creates a file for at most `limit` bytes in `dir`, which is created if missing. Only their owner can read them.
    pub(super) fn create(dir: &Path, limit: u64) -> io::Result<Self> {
        create_private_dir(dir)?;
        let file = tempfile::Builder::new()
            .prefix(".")
            .suffix(".part")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(dir)?;
        // The umask may have removed permissions of the owner.
        file.as_file()
            .set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self {
            file,
            dir: dir.to_owned(),
            digest: Sha256::new(),
            remaining_bytes: limit,
        })
    }

    /// Appends as many bytes as the limit allows.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let remaining = usize::try_from(self.remaining_bytes).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(remaining)];
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.remaining_bytes -= bytes.len() as u64;
        Ok(())
    }

    /// Gives the file its final name, the SHA-256 of its contents, and returns its path.
    pub(super) fn persist(self) -> io::Result<PathBuf> {
        self.persist_as("txt")
    }

    /// Like [`Self::persist`], with another extension.
    pub(super) fn persist_as(self, extension: &str) -> io::Result<PathBuf> {
        let name = format!("{}.{extension}", hex_digest(self.digest));
        let path = self.dir.join(name);
        self.file.persist(&path)?;
        Ok(path)
    }
}
