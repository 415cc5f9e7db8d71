//! Finds and removes blob directories whose session log was deleted by hand.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::LogError;
use crate::open::{is_default_log_name, list_matching_files};
use crate::prune::{PruneOptions, PruneResult};
use crate::records::{is_file_extension, is_sha256_hex};

/// Returns the directories `LOG.d` in `sessions_dir` whose log has a default name and no longer exists.
///
/// # Errors
/// The directory can't be read.
pub fn list_stale_blob_dirs(sessions_dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    let mut blob_dirs = list_matching_files(sessions_dir, |name| {
        strip_blob_dir_suffix(name).is_some_and(is_default_log_name)
    })?;
    blob_dirs
        .retain(|blob_dir| fs::symlink_metadata(blob_dir).is_ok_and(|metadata| metadata.is_dir()));
    blob_dirs.retain(|blob_dir| {
        let log = fs::symlink_metadata(blob_dir.with_extension(""));
        log.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    Ok(blob_dirs)
}

/// Returns `LOG` for `LOG.d`.
fn strip_blob_dir_suffix(name: &[u8]) -> Option<&[u8]> {
    name.strip_suffix(b".d")
}

impl PruneOptions {
    /// Removes a directory found by [`list_stale_blob_dirs`], unless it was written too recently or contains files that
    /// toolq doesn't create.
    ///
    /// # Errors
    /// It can't be read or removed.
    pub fn prune_stale_blob_dir(&self, blob_dir: &Path) -> Result<PruneResult, LogError> {
        let io = |action| {
            move |source| LogError::Io {
                path: blob_dir.to_owned(),
                action,
                source,
            }
        };
        let Some(blobs) = list_blob_files(blob_dir).map_err(io("read"))? else {
            return Ok(PruneResult::ForeignFiles);
        };
        let dir_metadata = fs::symlink_metadata(blob_dir).map_err(io("read"))?;
        let times = blobs
            .iter()
            .map(|(_, metadata)| metadata)
            .chain([&dir_metadata]);
        let last_written_ms = times.map(modified_ms).max().unwrap_or_default();
        if last_written_ms >= self.written_before_ms {
            return Ok(PruneResult::TooRecent);
        }
        if !self.dry_run {
            remove_blob_dir(blob_dir, &blobs).map_err(io("removed"))?;
        }
        let bytes = blobs.iter().map(|(_, metadata)| metadata.len()).sum();
        Ok(PruneResult::Removed {
            last_written_ms,
            bytes,
        })
    }
}

/// Removes a directory and the listed files in it, and nothing else.
pub(crate) fn remove_blob_dir(blob_dir: &Path, blobs: &[(PathBuf, Metadata)]) -> io::Result<()> {
    blobs
        .iter()
        .try_for_each(|(path, _)| fs::remove_file(path))?;
    fs::remove_dir(blob_dir)
}

/// Returns the files in a blob directory, or `None` if it contains anything that toolq doesn't create there.
pub(crate) fn list_blob_files(blob_dir: &Path) -> io::Result<Option<Vec<(PathBuf, Metadata)>>> {
    let mut blobs = Vec::new();
    for entry in fs::read_dir(blob_dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let is_ours = entry.file_name().to_str().is_some_and(is_blob_file_name);
        if !is_ours || !metadata.is_file() {
            return Ok(None);
        }
        blobs.push((entry.path(), metadata));
    }
    Ok(Some(blobs))
}

/// Returns whether `name` is that of a blob, of a saved output or attachment, or of one of them while it is being written.
fn is_blob_file_name(name: &str) -> bool {
    let digest = match name.split_once('.') {
        Some((digest, extension)) if is_file_extension(extension) => digest,
        _ => name,
    };
    let unfinished = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".part"));
    is_sha256_hex(digest) || unfinished.is_some_and(|suffix| suffix.len() == 6)
}

/// Returns when a file was last modified: milliseconds since 1970.
pub(crate) fn modified_ms(metadata: &Metadata) -> u64 {
    let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
    let ms = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(ms.as_millis()).unwrap_or(u64::MAX)
}
