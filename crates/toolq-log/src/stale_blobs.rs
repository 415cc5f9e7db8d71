//! What is left beside a session log that somebody deleted by hand: its folder of bodies.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::LogError;
use crate::open::{files, is_default_name};
use crate::prune::{Prune, Pruned};
use crate::records::is_digest;

/// The folders `LOG.d` in `folder` that are named after a session of a default name, and whose log is gone.
///
/// # Errors
/// The folder can't be read.
pub fn stale_blob_dirs(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    let mut found = files(folder, |name| log_of(name).is_some_and(is_default_name))?;
    found.retain(|bodies| fs::symlink_metadata(bodies).is_ok_and(|found| found.is_dir()));
    found.retain(|bodies| {
        let log = fs::symlink_metadata(bodies.with_extension(""));
        log.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    Ok(found)
}

/// `LOG` of `LOG.d`.
fn log_of(name: &[u8]) -> Option<&[u8]> {
    name.strip_suffix(b".d")
}

impl Prune {
    /// Removes a folder of [`remains`], if nothing of it is young, and all of it was made by toolq.
    ///
    /// # Errors
    /// It can't be read or removed.
    pub fn remains(&self, folder: &Path) -> Result<Pruned, LogError> {
        let io = |doing| {
            move |source| LogError::Io {
                path: folder.to_owned(),
                doing,
                source,
            }
        };
        let Some(found) = bodies(folder).map_err(io("read"))? else {
            return Ok(Pruned::Foreign);
        };
        let own = fs::symlink_metadata(folder).map_err(io("read"))?;
        let times = found.iter().map(|(_, body)| body).chain([&own]);
        let written = times.map(changed).max().unwrap_or_default();
        if written >= self.before {
            return Ok(Pruned::Young);
        }
        if !self.dry_run {
            remove(folder, &found).map_err(io("removed"))?;
        }
        let bytes = found.iter().map(|(_, body)| body.len()).sum();
        Ok(Pruned::Removed { written, bytes })
    }
}

/// Removes a folder with what was found in it, and nothing else.
pub(crate) fn remove(folder: &Path, found: &[(PathBuf, Metadata)]) -> io::Result<()> {
    found
        .iter()
        .try_for_each(|(path, _)| fs::remove_file(path))?;
    fs::remove_dir(folder)
}

/// The files of the folder; none where there is anything that toolq doesn't make there.
pub(crate) fn bodies(folder: &Path) -> io::Result<Option<Vec<(PathBuf, Metadata)>>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let is_ours = entry.file_name().to_str().is_some_and(is_own_name);
        if !is_ours || !metadata.is_file() {
            return Ok(None);
        }
        found.push((entry.path(), metadata));
    }
    Ok(Some(found))
}

/// A body, the whole of an output that was cut, or either while it was written.
fn is_own_name(name: &str) -> bool {
    let whole = name
        .strip_suffix(".part")
        .or(name.strip_suffix(".txt"))
        .unwrap_or(name);
    let unfinished = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".part"));
    is_digest(whole) || unfinished.is_some_and(|random| random.len() == 6)
}

/// When a file was changed: milliseconds since 1970.
pub(crate) fn changed(metadata: &Metadata) -> u64 {
    let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
    let ms = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(ms.as_millis()).unwrap_or(u64::MAX)
}
