//! Writes a document to stdout as it is made, so that a long one is never in memory as a whole.

use std::{fmt, io};

use crate::output::stdout::{self, StdoutError};

/// How much is collected before it is written, in bytes. A pipe holds twice as much, so it takes a piece while its reader is still
/// busy with the one before.
const PIECE_BYTES: usize = 32 * 1024;

/// A document that goes to stdout in pieces. After the first failure, the rest is dropped.
#[derive(Default)]
pub(crate) struct DocumentWriter {
    unwritten: Vec<u8>,
    failure: Option<StdoutError>,
}

impl DocumentWriter {
    /// Ends a part of the document, such as a line. `made` says whether the part was made to its end. What is collected may
    /// stay unwritten until [`write_collected`](Self::write_collected).
    ///
    /// # Errors
    /// The document couldn't be written up to here, for one of the reasons of [`stdout::write_lines`], or the part couldn't
    /// be made.
    pub(crate) fn finish_part<E: std::error::Error + Send + Sync + 'static>(
        &mut self,
        made: Result<(), E>,
    ) -> Result<(), StdoutError> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => made.map_err(|error| StdoutError::Failed(io::Error::other(error))),
        }
    }

    /// Writes what is collected.
    ///
    /// # Errors
    /// The document couldn't be written up to here.
    pub(crate) fn write_collected(&mut self) -> Result<(), StdoutError> {
        self.write_piece();
        self.failure.take().map_or(Ok(()), Err)
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
            self.failure = stdout::write_lines(&self.unwritten).err();
            self.unwritten.clear();
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
