//! A log that is read as an input: what it says of its calls decides what runs, so all of it must be as it was written.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::LogError;
use crate::read::reader::Records;

/// Verifies a log from its first line to its last. `file` is open, `path` is how people call it. An end that a killed run
/// has left torn is none of damage.
///
/// # Errors
/// It is damaged, of a newer format, or a run still writes it: what that will run can't be told from it.
pub fn witness(path: &Path, file: File) -> Result<(), LogError> {
    let io = |source| LogError::Io {
        path: path.to_owned(),
        doing: "read",
        source,
    };
    // Its own file description has its lock; what is piped has no writer.
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map_err(io)?,
        Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => return Err(io(source)),
    }
    for record in Records::of(file) {
        match record {
            Err(damage) if !damage.is_torn() => return Err(LogError::of(path, damage)),
            _ => {}
        }
    }
    Ok(())
}
