//! Decodes a body that a server has compressed, whether or not it was asked to.

use std::io::{self, Write as _};
use std::mem;

use flate2::write::MultiGzDecoder;

/// A body in gzip (RFC 1952) that is still arriving.
pub(super) struct GzipBody {
    decoder: MultiGzDecoder<Vec<u8>>,
    is_empty: bool,
}

impl GzipBody {
    pub(super) fn new() -> Self {
        Self {
            decoder: MultiGzDecoder::new(Vec::new()),
            is_empty: true,
        }
    }

    /// Returns what the next bytes stand for, which may be a thousand times as long.
    ///
    /// # Errors
    /// They aren't gzip.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.is_empty &= bytes.is_empty();
        self.decoder.write_all(bytes)?;
        Ok(mem::take(self.decoder.get_mut()))
    }

    /// Returns the rest, once all bytes have arrived.
    ///
    /// # Errors
    /// The body isn't whole. An empty one is: not every response has a body.
    pub(super) fn finish(&mut self) -> io::Result<Vec<u8>> {
        if !self.is_empty {
            self.decoder.try_finish()?;
        }
        Ok(mem::take(self.decoder.get_mut()))
    }
}
