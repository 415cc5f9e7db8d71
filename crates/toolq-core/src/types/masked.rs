use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::json_line;
use crate::types::answer::Content;
use redact::Mask;

/// A text that is serialised with its secrets masked.
#[derive(Debug, Clone, Copy)]
pub struct MaskedText<'a>(pub &'a str, pub &'a Mask);

/// A JSON value that is serialised as it came, digits and order of keys kept, but on one line and with its secrets
/// masked. Only for `serde_json`.
#[derive(Debug, Clone, Copy)]
pub struct MaskedJson<'a>(pub &'a RawValue, pub &'a Mask);

/// What a model reads of a result, serialised as a text or an array of content blocks.
#[derive(Debug, Clone, Copy)]
pub struct MaskedContent<'a>(pub &'a Content, pub &'a Mask);

impl Serialize for MaskedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.1.text(self.0))
    }
}

impl Serialize for MaskedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let masked = self.1.json(self.0.get());
        let line = json_line(&masked);
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
            Content::Text(text) => MaskedText(text, mask).serialize(serializer),
            Content::Blocks(blocks) => {
                serializer.collect_seq(blocks.iter().map(|block| MaskedJson(block, mask)))
            }
        }
    }
}

/// A text, as which it is serialised.
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

/// The input of a call: an object, or a text where a secret was more than a part of a string.
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
