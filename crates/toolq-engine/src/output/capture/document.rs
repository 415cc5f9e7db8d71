//! Captures an output that must be parsed as a whole: JSON or content blocks.

/// A document that is still arriving.
#[derive(Debug, Default)]
pub(crate) struct DocumentCapture {
    bytes: Vec<u8>,
    total_bytes: u64,
}

impl DocumentCapture {
    /// Larger documents aren't parsed: they would have to be kept in memory.
    pub(crate) const MAX_BYTES: usize = 16 << 20;

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let room = (Self::MAX_BYTES - self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
    }

    /// Returns how many bytes were received, including those that weren't kept.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the bytes that were kept: the whole document, or its beginning.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the document as text, without the byte order mark that some programs write.
    ///
    /// # Errors
    /// Why it can't be parsed: it is too large, or not valid UTF-8.
    pub(crate) fn text(&self) -> Result<&str, String> {
        if self.total_bytes > self.bytes.len() as u64 {
            return Err(format!(
                "the output is {} bytes long; at most {} can be parsed",
                self.total_bytes,
                Self::MAX_BYTES
            ));
        }
        let bytes = self
            .bytes
            .strip_prefix(b"\xEF\xBB\xBF")
            .unwrap_or(&self.bytes);
        str::from_utf8(bytes).map_err(|error| {
            format!(
                "the output is not valid UTF-8: invalid byte at offset {}",
                error.valid_up_to()
            )
        })
    }
}
