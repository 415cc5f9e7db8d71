//! Where a log that exists goes on. All of it is verified: who continues a damaged log would lose what it says.

use std::fs::File;
use std::path::Path;

use super::line::Chain;
use super::{History, LogError, Records};

/// Reads `file`, the log at `path`, from its first record to its last: what the next record continues, and what is
/// known of the last task.
pub(super) fn read(path: &Path, file: &File) -> Result<(Chain, History), LogError> {
    let copy = || {
        file.try_clone().map_err(|source| LogError::Io {
            path: path.to_owned(),
            doing: "read",
            source,
        })
    };
    let mut records = Records::of(copy()?);
    let mut history = History::default();
    while let Some(record) = records.next() {
        let taken = record.and_then(|record| history.take(&record, records.offset()));
        match taken {
            Ok(()) => {}
            Err(damage) if damage.is_torn() => return Err(LogError::Unfinished(path.to_owned())),
            Err(damage) => return Err(LogError::of(path, damage)),
        }
    }
    if let Some((major, minor)) = records.newer() {
        let path = path.to_owned();
        return Err(LogError::Newer { path, major, minor });
    }
    history.read_from(path.to_owned(), copy()?);
    Ok((records.end().clone(), history))
}
