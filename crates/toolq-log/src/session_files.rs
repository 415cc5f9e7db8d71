//! The files of a session: its log, the blobs next to it, and the copies of its torn ends.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::records::{blob_dir_for, is_file_extension, is_sha256_hex};
use toolq_core::text::to_millis;

/// Returns the size of a session in bytes: of its log and of all files that toolq wrote next to it. `torn_copies` are the
/// files in its directory to which torn ends were copied. What can't be read counts as nothing.
pub fn session_bytes(log: &Path, torn_copies: &[PathBuf]) -> u64 {
    SessionFiles::find(log, torn_copies).map_or(0, |files| files.bytes())
}

/// The files of one session.
pub(crate) struct SessionFiles {
    blob_dir: Option<BlobDir>,
    /// The copies of torn ends, then the log, with their sizes.
    files: Vec<(PathBuf, u64)>,
}

impl SessionFiles {
    pub(crate) fn find(log: &Path, torn_copies: &[PathBuf]) -> io::Result<Self> {
        let blob_dir = blob_dir_for(log);
        let has_blob_dir = fs::symlink_metadata(&blob_dir).is_ok_and(|metadata| metadata.is_dir());
        let torn_copies = torn_copies.iter().filter(|copy| is_torn_copy_of(copy, log));
        let paths = torn_copies.map(PathBuf::as_path).chain([log]);
        let sized = |path: &Path| Ok((path.to_owned(), fs::symlink_metadata(path)?.len()));
        Ok(Self {
            blob_dir: has_blob_dir.then(|| BlobDir::read(&blob_dir)).transpose()?,
            files: paths.map(sized).collect::<io::Result<_>>()?,
        })
    }

    /// Whether something in its blob directory isn't toolq's, so that the session can't be removed.
    pub(crate) fn has_foreign_files(&self) -> bool {
        let blob_dir = self.blob_dir.as_ref();
        blob_dir.is_some_and(|blob_dir| blob_dir.has_foreign_files)
    }

    pub(crate) fn bytes(&self) -> u64 {
        let blobs = self.blob_dir.as_ref().map_or(0, BlobDir::bytes);
        blobs + self.files.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Removes everything, or all but the log. The log goes last, so that an interrupted removal leaves one, which the next removal
    /// finds.
    pub(crate) fn remove(&self, keeps_log: bool) -> io::Result<()> {
        self.blob_dir.as_ref().map_or(Ok(()), BlobDir::remove)?;
        let count = self.files.len() - usize::from(keeps_log);
        let mut removed = self.files[..count].iter();
        removed.try_for_each(|(path, _)| fs::remove_file(path))
    }
}

/// A blob directory, with the files in it that toolq wrote.
pub(crate) struct BlobDir {
    path: PathBuf,
    files: Vec<(PathBuf, Metadata)>,
    /// Whether it contains anything that toolq doesn't create there.
    pub(crate) has_foreign_files: bool,
}

impl BlobDir {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let mut dir = Self {
            path: path.to_owned(),
            files: Vec::new(),
            has_foreign_files: false,
        };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let has_our_name = entry.file_name().to_str().is_some_and(is_blob_file_name);
            if has_our_name && metadata.is_file() {
                dir.files.push((entry.path(), metadata));
            } else {
                dir.has_foreign_files = true;
            }
        }
        Ok(dir)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, metadata)| metadata.len()).sum()
    }

    /// Returns when the latest of its files was modified: milliseconds since 1970, or 0 if it has no files.
    pub(crate) fn last_modified_ms(&self) -> u64 {
        let times = self.files.iter().map(|(_, metadata)| modified_ms(metadata));
        times.max().unwrap_or_default()
    }

    /// Removes the files, then the directory, which fails if there are others.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(path, _)| fs::remove_file(path))?;
        fs::remove_dir(&self.path)
    }
}

/// Returns whether `name` is that of a blob, of a saved output or attachment, or of one of them while it is being written.
fn is_blob_file_name(name: &str) -> bool {
    let digest = match name.split_once('.') {
        Some((digest, extension)) if is_file_extension(extension) => digest,
        _ => name,
    };
    let unfinished = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".part"));
    is_sha256_hex(digest) || unfinished.is_some_and(|suffix| suffix.len() == 6)
}

/// Returns when a file was last modified: milliseconds since 1970.
pub(crate) fn modified_ms(metadata: &Metadata) -> u64 {
    let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
    to_millis(changed.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns whether `torn` is a copy of a torn end of `log`: `LOG.torn-SEQ`.
fn is_torn_copy_of(torn: &Path, log: &Path) -> bool {
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or(OsStr::new(""))
            .as_encoded_bytes()
            .to_vec()
    };
    let (torn, log) = (name(torn), name(log));
    let suffix = torn.strip_prefix(log.as_slice());
    suffix.is_some_and(|suffix| suffix.starts_with(b".torn-"))
}
