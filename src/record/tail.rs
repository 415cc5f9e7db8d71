//! Where a log that exists goes on. All of it is verified: who continues a damaged log would lose what it says.

use std::fs::File;
use std::path::Path;

use super::line::Chain;
use super::{Kind, LogError, Records};

/// What the next record of `file` continues.
pub(super) fn chain_of(path: &Path, file: &File) -> Result<Chain, LogError> {
    let file = file.try_clone().map_err(|source| LogError::Io {
        path: path.to_owned(),
        doing: "read",
        source,
    })?;
    let mut records = Records::of(file);
    let mut last = None;
    for record in &mut records {
        match record {
            Ok(record) => last = Some(record.kind),
            Err(damage) if damage.is_torn() => return Err(LogError::Unfinished(path.to_owned())),
            Err(damage) => return Err(LogError::of(path, damage)),
        }
    }
    if let Some((major, minor)) = records.newer() {
        let path = path.to_owned();
        return Err(LogError::Newer { path, major, minor });
    }
    match last {
        None | Some(Kind::SessionEnd) => Ok(records.end().clone()),
        Some(_) => Err(LogError::Unfinished(path.to_owned())),
    }
}
