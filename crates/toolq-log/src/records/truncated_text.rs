//! Masks and shortens texts that go into metadata.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::records::line::sha256_hex;
use redact::Mask;

/// Longest text that metadata holds whole, in bytes. Metadata is never stored in a file, so it has to be small.
const MAX_TEXT_BYTES: usize = 512;
/// How much of a longer text is kept, in bytes.
const TRUNCATED_TEXT_BYTES: usize = 400;

/// A text in metadata that toolq didn't choose, such as an id, a tool name or an error. Its secrets are masked. Of a
/// text longer than 512 bytes, only the beginning is kept, with the length and digest of the whole text so that it can
/// still be distinguished from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TruncatedText<'a>(pub(crate) &'a str, pub(crate) &'a Mask);

/// Returns whether metadata has only part of this text.
pub(crate) fn is_truncated(text: &str, mask: &Mask) -> bool {
    mask.apply(text).len() > MAX_TEXT_BYTES
}

impl TruncatedText<'_> {
    /// Returns the text as it is written to the record.
    pub(crate) fn recorded_text(&self) -> Cow<'_, str> {
        let whole = self.1.apply(self.0);
        if whole.len() <= MAX_TEXT_BYTES {
            return whole;
        }
        let kept = &whole[..whole.floor_char_boundary(TRUNCATED_TEXT_BYTES)];
        let (bytes, digest) = (whole.len(), sha256_hex(whole.as_bytes()));
        Cow::Owned(format!("{kept}… ({bytes} bytes, sha256 {digest})"))
    }
}

impl Serialize for TruncatedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.recorded_text())
    }
}

impl JsonSchema for TruncatedText<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
