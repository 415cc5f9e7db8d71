//! The whole of an output that was cut, in a file for whoever wants to read on.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::digests::hex;
use toolq_core::os::make_private_folder;

/// A file that is being written. Dropping it without [`Self::keep`] removes it.
#[derive(Debug)]
pub(crate) struct WholeFile {
    file: NamedTempFile,
    dir: PathBuf,
    digest: Sha256,
    /// How many bytes it may still take.
    room: u64,
}

impl WholeFile {
    /// A new file in `dir` (made if need be), for at most `limit` bytes. Only its owner can read either.
    pub(super) fn create(dir: &Path, limit: u64) -> io::Result<Self> {
        make_private_folder(dir)?;
        let file = tempfile::Builder::new()
            .prefix(".")
            .suffix(".part")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(dir)?;
        // The umask may have taken more than it should.
        file.as_file()
            .set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self {
            file,
            dir: dir.to_owned(),
            digest: Sha256::new(),
            room: limit,
        })
    }

    /// Appends what there is room for.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.room -= bytes.len() as u64;
        Ok(())
    }

    /// Gives it its name, the SHA-256 of what it holds.
    pub(super) fn keep(self) -> io::Result<PathBuf> {
        let path = self.dir.join(format!("{}.txt", hex(self.digest)));
        self.file.persist(&path)?;
        Ok(path)
    }
}
