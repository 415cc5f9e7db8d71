//! Finds and removes blob directories whose session log was deleted by hand.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::LogError;
use crate::open::{is_default_log_name, list_matching_files};
use crate::prune::{PruneOptions, PruneResult};
use crate::session_files::{BlobDir, modified_ms};

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
        let blobs = BlobDir::read(blob_dir).map_err(io("read"))?;
        if blobs.has_foreign_files {
            return Ok(PruneResult::ForeignFiles);
        }
        let dir_metadata = fs::symlink_metadata(blob_dir).map_err(io("read"))?;
        let last_written_ms = blobs.last_modified_ms().max(modified_ms(&dir_metadata));
        if last_written_ms >= self.written_before_ms {
            return Ok(PruneResult::TooRecent);
        }
        if !self.dry_run {
            blobs.remove().map_err(io("removed"))?;
        }
        Ok(PruneResult::Pruned {
            keeps_log: false,
            last_written_ms,
            bytes: blobs.bytes(),
        })
    }
}
