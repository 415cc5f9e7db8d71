//! Writes new results into recordings. Only the bytes of changed results change.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::NamedTempFile;
use thiserror::Error;

/// The replacement of a recorded result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingEdit {
    /// The recorded result's bytes in the file.
    pub byte_range: Range<u64>,
    /// The JSON of the new result.
    pub text: String,
}

/// Why a recording wasn't updated. It is left unchanged.
#[derive(Debug, Error)]
pub enum UpdateRecordingError {
    /// The file is read-only.
    #[error("it is read-only")]
    ReadOnly,
    /// Another program wrote it.
    #[error("it changed while it was being replayed")]
    Changed,
    /// Any other failure.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Identifies the state of a recording before it is replayed, to detect changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    identity: (u64, u64),
    len: u64,
    modified: (i64, i64),
}

impl FileStamp {
    /// Returns the stamp of the file at `path`.
    ///
    /// # Errors
    /// Its metadata can't be read.
    pub fn from_path(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            identity: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Applies `edits` to the recording at `path`, provided that it still matches `stamp`. Returns the number of edits that
/// took effect.
///
/// The new content is written to a temporary file next to it, which then replaces it, with its owner and permissions. A
/// symlink stays a symlink. If one recorded result answers several calls and their edits differ, only the first is
/// applied.
///
/// # Errors
/// The file is read-only, changed in the meantime, or can't be written. It is left unchanged.
pub fn update_recording(
    path: &Path,
    stamp: FileStamp,
    mut edits: Vec<RecordingEdit>,
) -> Result<usize, UpdateRecordingError> {
    edits.sort_by_key(|edit| edit.byte_range.start);
    let edit_count = edits.len();
    let mut skipped = 0;
    edits.dedup_by(|later, first| {
        let same = later.byte_range.start < first.byte_range.end;
        skipped += usize::from(same && later.text != first.text);
        same
    });
    let path = fs::canonicalize(path)?;
    let mut old = File::open(&path)?;
    let metadata = old.metadata()?;
    if metadata.permissions().readonly() {
        return Err(UpdateRecordingError::ReadOnly);
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut new = NamedTempFile::new_in(dir)?;
    copy_with_edits(&mut old, &edits, new.as_file_mut())?;
    let _ = std::os::unix::fs::fchown(new.as_file(), Some(metadata.uid()), Some(metadata.gid()));
    new.as_file().set_permissions(metadata.permissions())?;
    new.as_file().sync_all()?;
    if FileStamp::from_metadata(&metadata) != stamp || FileStamp::from_path(&path)? != stamp {
        return Err(UpdateRecordingError::Changed);
    }
    new.persist(&path).map_err(|refused| refused.error)?;
    Ok(edit_count - skipped)
}

/// Copies `old` to `new` and applies the sorted edits.
fn copy_with_edits(old: &mut File, edits: &[RecordingEdit], new: &mut File) -> io::Result<()> {
    let mut offset = 0;
    for edit in edits {
        io::copy(&mut (&*old).take(edit.byte_range.start - offset), new)?;
        new.write_all(edit.text.as_bytes())?;
        offset = edit.byte_range.end;
        old.seek(SeekFrom::Start(offset))?;
    }
    io::copy(old, new).map(drop)
}
