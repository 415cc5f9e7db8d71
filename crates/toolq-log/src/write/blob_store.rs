use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::records::{Stored, sha256};
use crate::write::storage::sync_folder;
use toolq_core::os::{failpoint, make_private_folder};

/// The folder of bodies that are too large for a record: `LOG.d`, made when the first is stored.
pub(crate) struct Bodies {
    folder: PathBuf,
}

impl Bodies {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the JSON of `body` into its file. When this returns, the file and its name survive a loss of power.
    pub(crate) fn store(&self, body: &impl Serialize) -> io::Result<Stored> {
        let json = serde_json::to_vec(body)?;
        let stored = Stored {
            file: sha256(&json),
            bytes: json.len() as u64,
        };
        let written = self.write(&stored.file, &json);
        written.map_err(|error| {
            let folder = self.folder.display();
            io::Error::new(error.kind(), format!("{folder}: {error}"))
        })?;
        Ok(stored)
    }

    fn write(&self, name: &str, json: &[u8]) -> io::Result<()> {
        make_private_folder(&self.folder)?;
        failpoint("body.before")?;
        publish(&self.folder.join(name), json)?;
        failpoint("body.after")
    }
}

/// Makes a file of these bytes, readable by its owner only. It is whole when it has its name, also after a loss of power.
/// What can't be written whole leaves nothing, so that a full disk gets its room back.
pub(crate) fn publish(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = place.as_os_str().to_owned();
    unfinished.push(".part");
    let unfinished = PathBuf::from(unfinished);
    let _ = fs::remove_file(&unfinished);
    let written = write_whole(&unfinished, bytes).and_then(|()| {
        failpoint("rename.before")?;
        fs::rename(&unfinished, place)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    failpoint("rename.after")?;
    sync_folder(place.parent().unwrap_or(place))
}

fn write_whole(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(place)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}
