//! Where a log that exists goes on. Only its first and last records are read: the first says what the file is, the last
//! that its run came to an end. Whatever is not surely so is refused.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::Deserialize;

use super::line::{self, Read};
use super::{FORMAT, LogError, MAX_RECORD};

/// What the next record continues.
pub(super) struct Chain {
    pub(super) seq: u64,
    pub(super) prev: String,
}

impl Chain {
    /// That of an empty file.
    pub(super) fn start() -> Self {
        Self {
            seq: 0,
            prev: "0".repeat(16),
        }
    }

    /// That of a file of `len` bytes.
    pub(super) fn of(path: &Path, file: &File, len: u64) -> Result<Self, LogError> {
        let io = |source| LogError::Io {
            path: path.to_owned(),
            doing: "read",
            source,
        };
        if len == 0 {
            return Ok(Self::start());
        }
        check_first(path, &window(file, 0, len).map_err(io)?)?;
        let from = len.saturating_sub(MAX_RECORD as u64);
        let last = window(file, from, len).map_err(io)?;
        let last = last_line(&last).ok_or_else(|| LogError::Unfinished(path.to_owned()))?;
        let record = line::read(last).ok_or_else(|| LogError::Damaged(path.to_owned()))?;
        if record.kind != "session_end" {
            return Err(LogError::Unfinished(path.to_owned()));
        }
        Ok(Self {
            seq: record.seq + 1,
            prev: line::digest(last),
        })
    }
}

/// At most one record's bytes from `from` on.
fn window(file: &File, from: u64, len: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(len - from).map_or(MAX_RECORD, |rest| rest.min(MAX_RECORD));
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// The last line where it has its break.
fn last_line(bytes: &[u8]) -> Option<&[u8]> {
    let lines = bytes.strip_suffix(b"\n")?;
    lines.rsplit(|byte| *byte == b'\n').next()
}

#[derive(Deserialize)]
struct SessionFormat {
    format: Version,
}

#[derive(Deserialize)]
struct Version {
    major: u32,
    minor: u32,
}

fn check_first(path: &Path, bytes: &[u8]) -> Result<(), LogError> {
    let first = bytes.split(|byte| *byte == b'\n').next();
    let session = |record: &Read<'_>| record.kind == "session";
    let record = first.and_then(line::read).filter(session);
    let read = |record: Read<'_>| serde_json::from_str(record.metadata.get()).ok();
    let session: Option<SessionFormat> = record.and_then(read);
    let Some(SessionFormat { format }) = session else {
        return Err(LogError::NotALog(path.to_owned()));
    };
    let (major, minor) = FORMAT;
    if format.major != major || format.minor > minor {
        return Err(LogError::Newer {
            path: path.to_owned(),
            major: format.major,
            minor: format.minor,
        });
    }
    Ok(())
}
