//! Saves outputs to files: the complete text of one that was cut, so that the rest can be read, or the beginning of one.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use data_encoding::HEXLOWER;
use redact::{Mask, MaskedStream};
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
    fn persist_as(self, extension: &str) -> io::Result<PathBuf> {
        let name = format!("{}.{extension}", HEXLOWER.encode(&self.digest.finalize()));
        let path = self.dir.join(name);
        self.file.persist(&path)?;
        Ok(path)
    }
}

// Saves the beginning of an output to a file, whether or not anything is cut.

/// An output whose beginning is saved, masked.
#[derive(Debug)]
pub(crate) struct LeadingFile {
    masked: MaskedStream,
    /// `None` saves nothing.
    dir: Option<PathBuf>,
    max_bytes: u64,
    file: Option<SavedFile>,
    total_bytes: u64,
}

impl LeadingFile {
    /// Saves up to `max_bytes` to a file in `dir`, which is created with the first byte.
    pub(crate) fn new(dir: Option<PathBuf>, max_bytes: u64, mask: Arc<Mask>) -> Self {
        Self {
            masked: MaskedStream::new(mask),
            dir,
            max_bytes,
            file: None,
            total_bytes: 0,
        }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let Self {
            masked,
            dir,
            max_bytes,
            file,
            ..
        } = self;
        masked.push(bytes, |bytes| save(bytes, dir, *max_bytes, file));
    }

    /// Returns how many bytes came, and the file, if there is one, with this extension.
    pub(crate) fn finish(mut self, extension: &str) -> (u64, Option<PathBuf>) {
        let Self {
            masked,
            dir,
            max_bytes,
            file,
            ..
        } = &mut self;
        masked.finish(|bytes| save(bytes, dir, *max_bytes, file));
        let path = self.file.and_then(|file| file.persist_as(extension).ok());
        (self.total_bytes, path)
    }
}

/// Appends to the file. If it can't be written, nothing is saved.
fn save(bytes: &[u8], dir: &mut Option<PathBuf>, max_bytes: u64, file: &mut Option<SavedFile>) {
    let Some(path) = dir.as_ref().filter(|_| !bytes.is_empty()) else {
        return;
    };
    if file.is_none() {
        *file = SavedFile::create(path, max_bytes).ok();
    }
    let saved = file.as_mut().map(|file| file.push(bytes));
    if !matches!(saved, Some(Ok(()))) {
        (*file, *dir) = (None, None);
    }
}
