//! Verifies a log that is used as an input. Its records decide what runs, so all of them must be intact.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::LogError;
use crate::read::corruption::Corruption;
use crate::read::reader::RecordReader;

/// Verifies a log from its first line to its last. `file` is the open log, `path` its name in messages. A torn end left
/// by a killed run isn't damage: it is returned.
///
/// # Errors
/// The log is damaged, has a newer format, or is still being written, so that it doesn't show yet what will run.
pub fn verify_log(path: &Path, file: File) -> Result<Option<Corruption>, LogError> {
    let read_error = |source| LogError::Io {
        path: path.to_owned(),
        action: "read",
        source,
    };
    // A writer's lock belongs to its own file description, so it conflicts with ours. Piped input has no writer.
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map_err(read_error)?,
        Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => return Err(read_error(source)),
    }
    let mut torn_end = None;
    for record in RecordReader::from_file(file) {
        match record {
            Err(corruption) if corruption.is_torn_end() => torn_end = Some(corruption),
            Err(corruption) => return Err(LogError::from_corruption(path, corruption)),
            Ok(_) => {}
        }
    }
    Ok(torn_end)
}
