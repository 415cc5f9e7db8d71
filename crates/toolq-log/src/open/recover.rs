//! Sets the torn end of a log aside. What was torn was never acted on: a start is followed by a call only when its
//! write came to an end.
//!
//! 1. The torn bytes are copied to `LOG.torn-SEQ`, by a file that gets its name when it is whole.
//! 2. The log is cut off behind its last whole record.
//! 3. A record `recovered` says so, and is made durable.
//!
//! A death between two of these leaves a log that the next opening recovers in the same way: a copy that is there and
//! has no record yet gets one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::{Damage, Flaw, MAX_TORN};
use crate::records::{Kind, sha256};
use crate::write::{Durable, Journal, publish};
use toolq_core::os::failpoint;

/// The end of a log that is no whole record.
pub(crate) struct Torn {
    bytes: u64,
}

impl Torn {
    /// # Errors
    /// The damage is another.
    pub(crate) fn of(damage: Damage) -> Result<Self, Damage> {
        match damage.what {
            Flaw::Torn { bytes } => Ok(Self { bytes }),
            _ => Err(damage),
        }
    }
}

/// Metadata of a `recovered`: what was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveredFields {
    /// How many bytes the log lost.
    pub dropped_bytes: u64,
    /// Of these bytes, in hexadecimal.
    pub sha256: String,
    /// The name of the file beside the log that has them.
    pub file: String,
}

impl RecoveredFields {
    /// What was done to the log at `path`, for people.
    pub fn words(&self, path: &Path) -> String {
        let bytes = match self.dropped_bytes {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        };
        let file = path.with_file_name(&self.file);
        format!(
            "the end of the session log {} was torn; what was no whole record, {bytes}, now stands in {}",
            path.display(),
            file.display()
        )
    }
}

/// Copies the torn end of `file` behind its first `len` bytes, where record `seq` would stand, and cuts it off. Returns what the log doesn't tell yet, also of a recovery that was
/// itself cut short.
pub(crate) fn set_aside(
    path: &Path,
    file: &File,
    (seq, len): (u64, u64),
    torn: Option<&Torn>,
) -> io::Result<Vec<RecoveredFields>> {
    let (mut aside, taken) = copies(path, seq)?;
    let Some(&Torn { bytes }) = torn else {
        return Ok(aside);
    };
    let mut dropped = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut dropped, len)?;
    let name = name_of(path, seq, taken);
    let copied = fields(&name, &dropped);
    // A copy that was made before the cut could be.
    let last = aside.last();
    if last.is_none_or(|last| last.sha256 != copied.sha256) {
        publish(&path.with_file_name(&name), &dropped)?;
        aside.push(copied);
    }
    failpoint("recover.copied")?;
    file.set_len(len)?;
    file.sync_data()?;
    failpoint("recover.cut")?;
    Ok(aside)
}

/// Adds the records of what was set aside.
pub(crate) fn note(journal: &mut Journal, aside: &[RecoveredFields]) -> io::Result<()> {
    if aside.is_empty() {
        return Ok(());
    }
    for fields in aside {
        journal.add(&Kind::Recovered, None, &(), fields)?;
    }
    journal.commit(Durable::Now)?;
    failpoint("recover.noted")
}

/// The copies of torn ends before which record `seq` would stand, and how many of their names are taken: a file that begins
/// as no record does is somebody else's.
fn copies(path: &Path, seq: u64) -> io::Result<(Vec<RecoveredFields>, usize)> {
    let (mut found, mut taken) = (Vec::new(), 0);
    loop {
        let name = name_of(path, seq, taken);
        let copy = path.with_file_name(&name);
        match std::fs::symlink_metadata(&copy) {
            Ok(metadata) if metadata.len() > MAX_TORN => {
                taken += 1;
                continue;
            }
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => {
                return Err(io::Error::other(format!(
                    "{} is in the way",
                    copy.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((found, taken)),
            Err(error) => return Err(error),
        }
        let bytes = std::fs::read(&copy)?;
        if may_be_torn(&bytes, seq) {
            found.push(fields(&name, &bytes));
        }
        taken += 1;
    }
}

/// Whether these may be the end of a log behind which record `seq` was being written. What never reached the disk is zeros.
fn may_be_torn(bytes: &[u8], seq: u64) -> bool {
    let begin = format!("{{\"seq\":{seq},");
    let len = bytes.len().min(begin.len());
    bytes.first() == Some(&0) || bytes[..len] == begin.as_bytes()[..len]
}

fn fields(name: &OsString, dropped: &[u8]) -> RecoveredFields {
    RecoveredFields {
        dropped_bytes: dropped.len() as u64,
        sha256: sha256(dropped),
        file: name.to_string_lossy().into_owned(),
    }
}

/// `LOG.torn-SEQ`, and `LOG.torn-SEQ.N` where there are more.
fn name_of(path: &Path, seq: u64, copies: usize) -> OsString {
    let mut name = PathBuf::from(path)
        .file_name()
        .unwrap_or_default()
        .to_owned();
    name.push(format!(".torn-{seq}"));
    if copies > 0 {
        name.push(format!(".{copies}"));
    }
    name
}
