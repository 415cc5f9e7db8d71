//! An output that must be parsed as a whole: JSON or content blocks.

/// A document that is still coming.
#[derive(Debug, Default)]
pub(crate) struct Document {
    bytes: Vec<u8>,
    total: u64,
}

impl Document {
    /// No document of more bytes is read: it would have to be held in memory.
    pub(crate) const LARGEST: usize = 16 << 20;

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (Self::LARGEST - self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
    }

    /// Bytes that came.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What is here: the whole document, or its beginning.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text, without the mark that some programs put before UTF-8.
    ///
    /// # Errors
    /// Why it can't be parsed.
    pub(crate) fn text(&self) -> Result<&str, String> {
        if self.total > self.bytes.len() as u64 {
            return Err(format!(
                "the output has {} bytes; at most {} can be parsed",
                self.total,
                Self::LARGEST
            ));
        }
        let bytes = self
            .bytes
            .strip_prefix(b"\xEF\xBB\xBF")
            .unwrap_or(&self.bytes);
        str::from_utf8(bytes).map_err(|error| {
            format!(
                "the output is no UTF-8: byte {} begins no character",
                error.valid_up_to()
            )
        })
    }
}
