//! A file that a report is written to.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a report isn't complete.
#[derive(Debug, thiserror::Error)]
#[error("{} can't be written: {cause}", path.display())]
pub(crate) struct ReportFileError {
    path: PathBuf,
    cause: io::Error,
}

/// A file that names itself in its errors, each of which has a [`ReportFileError`] within.
pub(crate) struct ReportFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl ReportFile {
    /// Creates or truncates the file.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path).map_err(|cause| name_error(path, cause))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
        })
    }
}

impl Write for ReportFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        written.map_err(|cause| name_error(&self.path, cause))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|cause| name_error(&self.path, cause))
    }
}

fn name_error(path: &Path, cause: io::Error) -> io::Error {
    let path = path.to_owned();
    io::Error::new(cause.kind(), ReportFileError { path, cause })
}
