use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::records::line::sha256;
use redact::Mask;

/// The longest text of a model that stands in metadata, in bytes. Metadata is always in its record, so it stays small.
const MAX_BRIEF: usize = 512;
/// What is kept of a longer one, in bytes.
const KEPT: usize = 400;

/// A text in metadata that somebody else chose: an id, a name, a complaint. Its secrets are masked. Of one that is longer
/// than 512 bytes the beginning is kept, with the length and the digest of all of it, so that it is still told from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brief<'a>(pub(crate) &'a str, pub(crate) &'a Mask);

/// Whether metadata has only a part of this text.
pub(crate) fn is_cut(text: &str, mask: &Mask) -> bool {
    mask.text(text).len() > MAX_BRIEF
}

impl Brief<'_> {
    /// The text as it stands in the record.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        let whole = self.1.text(self.0);
        if whole.len() <= MAX_BRIEF {
            return whole;
        }
        let kept = &whole[..whole.floor_char_boundary(KEPT)];
        let (bytes, digest) = (whole.len(), sha256(whole.as_bytes()));
        Cow::Owned(format!("{kept}… ({bytes} bytes, sha256 {digest})"))
    }
}

impl Serialize for Brief<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl JsonSchema for Brief<'_> {
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
