//! Stderr as a stream whose reader may be slow: a thread that waits for it doesn't keep calls from running.

use std::io::{self, Write};

use crate::output::stalled_reader::{self, PIECE_BYTES};

/// Writes to stderr in pieces that a pipe takes at once.
pub(crate) struct StderrStream;

impl Write for StderrStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// Writes without letting another thread write in between.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        for piece in bytes.chunks(PIECE_BYTES) {
            stalled_reader::wait_until_stderr_writable(&stderr);
            stderr.write_all(piece)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
