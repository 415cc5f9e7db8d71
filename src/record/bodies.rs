use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::body::Stored;
use super::line::sha256;

/// The folder of bodies that are too large for a record: `LOG.d`, made when the first is stored.
pub(super) struct Bodies {
    folder: PathBuf,
}

impl Bodies {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the JSON of `body` into its file. It is whole when it has its name.
    pub(super) fn store(&self, body: &impl Serialize) -> io::Result<Stored> {
        let json = serde_json::to_vec(body)?;
        let stored = Stored {
            file: sha256(&json),
            bytes: json.len() as u64,
        };
        self.make_folder()?;
        let place = self.folder.join(&stored.file);
        let unfinished = place.with_extension("part");
        let _ = fs::remove_file(&unfinished);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?
            .write_all(&json)?;
        fs::rename(unfinished, place)?;
        Ok(stored)
    }

    fn make_folder(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if fs::symlink_metadata(&self.folder)?.is_dir() {
                    return Ok(());
                }
                Err(error)
            }
            made => made,
        }
    }
}
