//! Writes a document to stdout as it is made, so that a long one is never in memory as a whole.

use std::{fmt, io, mem};

use crate::output::stdout::{self, StdoutError};

/// How much is collected before it is written.
const PIECE_BYTES: usize = 64 << 10;

/// A document that goes to stdout in pieces. After the first failure, the rest is dropped.
#[derive(Default)]
pub(crate) struct DocumentWriter {
    unwritten: Vec<u8>,
    failure: Option<StdoutError>,
}

impl DocumentWriter {
    /// Writes what is left. `made` says whether the document was made to its end.
    ///
    /// # Errors
    /// A part of the document couldn't be written, for one of the reasons of [`stdout::write_lines`], or it couldn't be made.
    pub(crate) fn finish<E: std::error::Error + Send + Sync + 'static>(
        mut self,
        made: Result<(), E>,
    ) -> Result<(), StdoutError> {
        self.write_piece();
        match self.failure {
            Some(failure) => Err(failure),
            None => made.map_err(|error| StdoutError::Failed(io::Error::other(error))),
        }
    }

    /// Adds to the document. Returns whether it is still being written.
    fn add(&mut self, bytes: &[u8]) -> bool {
        if self.failure.is_none() {
            self.unwritten.extend_from_slice(bytes);
            if self.unwritten.len() >= PIECE_BYTES {
                self.write_piece();
            }
        }
        self.failure.is_none()
    }

    fn write_piece(&mut self) {
        if self.failure.is_none() && !self.unwritten.is_empty() {
            let piece = mem::take(&mut self.unwritten);
            self.failure = stdout::write_lines(&piece).err();
        }
    }
}

impl fmt::Write for DocumentWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes()).then_some(()).ok_or(fmt::Error)
    }
}

impl io::Write for DocumentWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_written = self.add(bytes);
        is_written
            .then_some(bytes.len())
            .ok_or_else(|| io::ErrorKind::WriteZero.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
