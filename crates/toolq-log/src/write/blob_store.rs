//! Stores content that is too large for a record in files of its own.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::records::StoredBlob;
use toolq_core::os::{create_private_dir, failpoint, sync_parent};

/// The directory `LOG.d` for content that is too large for a record. It is created when the first file is stored.
pub(crate) struct BlobStore {
    dir: PathBuf,
}

impl BlobStore {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes JSON to a file. When this returns, the file and its name survive a power loss.
    pub(crate) fn store(&self, json: &[u8]) -> io::Result<StoredBlob> {
        let stored = StoredBlob::of(json);
        let written = self.write_blob(&stored.file, json);
        written.map_err(|error| {
            let dir = self.dir.display();
            io::Error::new(error.kind(), format!("{dir}: {error}"))
        })?;
        Ok(stored)
    }

    fn write_blob(&self, name: &str, json: &[u8]) -> io::Result<()> {
        create_private_dir(&self.dir)?;
        failpoint("body.before")?;
        write_file_atomically(&self.dir.join(name), json)?;
        failpoint("body.after")
    }
}

/// Creates a file that only its owner can read. Once it has its name, it is complete, even after a power loss. If it
/// can't be written completely, nothing is left behind, so that a full disk gets its space back.
pub(crate) fn write_file_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut partial_path = path.as_os_str().to_owned();
    partial_path.push(".part");
    let partial_path = PathBuf::from(partial_path);
    let _ = fs::remove_file(&partial_path);
    let written = write_and_sync(&partial_path, bytes).and_then(|()| {
        failpoint("rename.before")?;
        fs::rename(&partial_path, path)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&partial_path);
        return Err(error);
    }
    failpoint("rename.after")?;
    sync_parent(path)
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}
