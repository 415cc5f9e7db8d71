//! New results into old recordings: only the bytes of what differs are others afterwards.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::NamedTempFile;
use thiserror::Error;

/// A result that takes the place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where the recorded one stands in the file, in bytes.
    pub place: Range<u64>,
    /// The JSON of the new one.
    pub text: String,
}

/// Why a recording could not be updated. It is as it was.
#[derive(Debug, Error)]
pub enum UpdateError {
    /// It is not to be written.
    #[error("it is read-only")]
    ReadOnly,
    /// Somebody else wrote it.
    #[error("it changed while it was replayed")]
    Changed,
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A recording as it was before it was replayed, by which a change is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// Of the file at `path`.
    ///
    /// # Errors
    /// It can't be looked at.
    pub fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::new(&metadata))
    }

    fn new(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Writes `edits` into the recording at `path`, which is what `stamp` says, and returns how many results are new.
///
/// The whole is written beside it and takes its name then, with its owner and permissions; a link stays one. Of two
/// edits of one place that differ the second is left out: such a result answers several calls.
///
/// # Errors
/// It is read-only, was changed meanwhile, or can't be written. Then nothing is changed.
pub fn update(path: &Path, stamp: Stamp, mut edits: Vec<Edit>) -> Result<usize, UpdateError> {
    edits.sort_by_key(|edit| edit.place.start);
    let all = edits.len();
    let mut left_out = 0;
    edits.dedup_by(|later, first| {
        let same = later.place.start < first.place.end;
        left_out += usize::from(same && later.text != first.text);
        same
    });
    let path = fs::canonicalize(path)?;
    let mut old = File::open(&path)?;
    let metadata = old.metadata()?;
    if metadata.permissions().readonly() {
        return Err(UpdateError::ReadOnly);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut new = NamedTempFile::new_in(folder)?;
    spliced(&mut old, &edits, new.as_file_mut())?;
    let _ = std::os::unix::fs::fchown(new.as_file(), Some(metadata.uid()), Some(metadata.gid()));
    new.as_file().set_permissions(metadata.permissions())?;
    new.as_file().sync_all()?;
    if Stamp::new(&metadata) != stamp || Stamp::of(&path)? != stamp {
        return Err(UpdateError::Changed);
    }
    new.persist(&path).map_err(|refused| refused.error)?;
    Ok(all - left_out)
}

/// Copies `old` with the edits, which are in order, in their places.
fn spliced(old: &mut File, edits: &[Edit], new: &mut File) -> io::Result<()> {
    let mut at = 0;
    for edit in edits {
        io::copy(&mut (&*old).take(edit.place.start - at), new)?;
        new.write_all(edit.text.as_bytes())?;
        at = edit.place.end;
        old.seek(SeekFrom::Start(at))?;
    }
    io::copy(old, new).map(drop)
}
