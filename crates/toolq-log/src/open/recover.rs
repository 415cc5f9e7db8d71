//! Sets the torn end of a log aside. Nothing ever acted on a torn record: a call starts only after the write of its
//! start record has completed.
//!
//! 1. The torn bytes are copied to `LOG.torn-SEQ`, a file that gets its name only when it is complete.
//! 2. The log is truncated after its last whole record.
//! 3. A `recovered` record is appended and synced.
//!
//! If toolq is killed between two of these steps, the next open recovers the log in the same way: a copy that has no
//! record yet gets one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::read::{Corruption, CorruptionKind, MAX_TORN_BYTES};
use crate::records::{RecordKind, RecoveredRecord, sha256_hex};
use crate::write::{Journal, write_file_atomically};
use toolq_core::os::failpoint;

/// The bytes after the last whole record of a log.
pub(crate) struct TornEnd {
    bytes: u64,
}

impl TornEnd {
    /// Converts the corruption that ended reading.
    ///
    /// # Errors
    /// It isn't a torn end.
    pub(crate) fn from_corruption(corruption: Corruption) -> Result<Self, Corruption> {
        match corruption.kind {
            CorruptionKind::Torn { bytes } => Ok(Self { bytes }),
            _ => Err(corruption),
        }
    }
}

/// Copies the torn end of `file`, which begins after the first `whole_bytes` bytes in the place of record `seq`, and
/// truncates the file. Returns everything that was set aside and isn't recorded in the log yet, including copies of an
/// earlier recovery that was interrupted.
pub(crate) fn set_aside_torn_end(
    path: &Path,
    file: &File,
    seq: u64,
    whole_bytes: u64,
    torn_end: Option<&TornEnd>,
) -> io::Result<Vec<RecoveredRecord>> {
    let (mut recovered, names_taken) = find_torn_copies(path, seq)?;
    let Some(&TornEnd { bytes }) = torn_end else {
        return Ok(recovered);
    };
    let mut dropped = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut dropped, whole_bytes)?;
    let name = torn_copy_name(path, seq, names_taken);
    let copy = recovered_fields(&name, &dropped);
    // An earlier recovery may have made the copy without getting to the truncation.
    let last = recovered.last();
    if last.is_none_or(|last| last.sha256 != copy.sha256) {
        write_file_atomically(&path.with_file_name(&name), &dropped)?;
        recovered.push(copy);
    }
    failpoint("recover.copied")?;
    file.set_len(whole_bytes)?;
    file.sync_data()?;
    failpoint("recover.cut")?;
    Ok(recovered)
}

/// Appends the records of what was set aside.
pub(crate) fn append_recovered_records(
    journal: &Journal,
    recovered: &[RecoveredRecord],
) -> io::Result<()> {
    if recovered.is_empty() {
        return Ok(());
    }
    for fields in recovered {
        journal.append(RecordKind::Recovered, None, (&(), fields), false)?;
    }
    journal.write()?;
    journal.sync().map_err(io::Error::other)?;
    failpoint("recover.noted")
}

/// Finds the copies of torn ends in the place of record `seq`, and counts how many of their names are taken. A file
/// that doesn't begin like that record isn't such a copy.
fn find_torn_copies(path: &Path, seq: u64) -> io::Result<(Vec<RecoveredRecord>, usize)> {
    let (mut found, mut names_taken) = (Vec::new(), 0);
    loop {
        let name = torn_copy_name(path, seq, names_taken);
        let copy = path.with_file_name(&name);
        match std::fs::symlink_metadata(&copy) {
            Ok(metadata) if metadata.len() > MAX_TORN_BYTES => {
                names_taken += 1;
                continue;
            }
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => {
                return Err(io::Error::other(format!(
                    "{} is in the way: it isn't a regular file",
                    copy.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((found, names_taken));
            }
            Err(error) => return Err(error),
        }
        let bytes = std::fs::read(&copy)?;
        if may_be_torn_end(&bytes, seq) {
            found.push(recovered_fields(&name, &bytes));
        }
        names_taken += 1;
    }
}

/// Returns whether these bytes may be what is left of record `seq`. Data that never reached the disk reads as zeros.
fn may_be_torn_end(bytes: &[u8], seq: u64) -> bool {
    let prefix = format!("{{\"seq\":{seq},");
    let len = bytes.len().min(prefix.len());
    bytes.first() == Some(&0) || bytes[..len] == prefix.as_bytes()[..len]
}

fn recovered_fields(name: &OsString, dropped: &[u8]) -> RecoveredRecord {
    RecoveredRecord {
        dropped_bytes: dropped.len() as u64,
        sha256: sha256_hex(dropped),
        file: name.to_string_lossy().into_owned(),
    }
}

/// Returns `LOG.torn-SEQ`, or `LOG.torn-SEQ.N` if there are earlier copies.
fn torn_copy_name(path: &Path, seq: u64, earlier_copies: usize) -> OsString {
    let mut name = PathBuf::from(path)
        .file_name()
        .unwrap_or_default()
        .to_owned();
    name.push(format!(".torn-{seq}"));
    if earlier_copies > 0 {
        name.push(format!(".{earlier_copies}"));
    }
    name
}
