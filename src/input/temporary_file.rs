//! Temporary files without a name, which are gone when they are closed.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Why there is no temporary file.
#[derive(Debug, thiserror::Error)]
#[error("a temporary file can't be created in {}: {cause}", dir.display())]
pub struct TemporaryFileError {
    dir: PathBuf,
    #[source]
    cause: io::Error,
}

/// Creates a temporary file in TMPDIR, or else in `/tmp`.
///
/// # Errors
/// [`TemporaryFileError`], within one of this type.
pub fn create_temporary_file() -> io::Result<File> {
    tempfile::tempfile().map_err(|cause| {
        let dir = tempfile::env::temp_dir();
        io::Error::new(cause.kind(), TemporaryFileError { dir, cause })
    })
}
