//! Wrappers that mask secrets while they serialize.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::to_json_line;
use crate::types::answer::ResultContent;
use redact::Mask;

/// A string that is serialized with its secrets masked.
#[derive(Debug, Clone, Copy)]
pub struct MaskedText<'a>(pub &'a str, pub &'a Mask);

/// A JSON value that is serialized on one line with its secrets masked. Digits and key order are preserved. Works only
/// with `serde_json`.
#[derive(Debug, Clone, Copy)]
pub struct MaskedJson<'a>(pub &'a RawValue, pub &'a Mask);

/// The content of a result, serialized with its secrets masked as a string or an array of content blocks.
#[derive(Debug, Clone, Copy)]
pub struct MaskedContent<'a>(pub &'a ResultContent, pub &'a Mask);

impl Serialize for MaskedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.1.apply(self.0))
    }
}

impl Serialize for MaskedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let masked = self.1.apply_to_json(self.0.get());
        let line = to_json_line(&masked);
        match (&masked, &line) {
            (Cow::Borrowed(_), Cow::Borrowed(_)) => self.0.serialize(serializer),
            _ => RawValue::from_string(line.into_owned())
                .map_err(S::Error::custom)?
                .serialize(serializer),
        }
    }
}

impl Serialize for MaskedContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(content, mask) = *self;
        match content {
            ResultContent::Text(text) => MaskedText(text, mask).serialize(serializer),
            ResultContent::Blocks(blocks) => {
                serializer.collect_seq(blocks.iter().map(|block| MaskedJson(block, mask)))
            }
        }
    }
}

/// Serialized as a plain string.
impl JsonSchema for MaskedText<'_> {
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

/// The input of a call: an object, or a string if masking a secret would have broken the JSON.
impl JsonSchema for MaskedJson<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Input".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": ["object", "string"]})
    }
}
