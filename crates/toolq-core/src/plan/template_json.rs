//! The JSON of what is filled in except for environment variables, which are kept by name.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::json::expect_json;
use crate::types::{HttpInvocation, MaskedJson, MaskedText, PartialJson, PartialTemplate};
use redact::Mask;

/// Renders the body of a request as JSON; returns `None` if the request has no body.
pub(crate) fn render_body(request: &HttpInvocation, mask: &Mask) -> Option<String> {
    Some(render_json(request.body.as_ref()?, mask))
}

/// Renders JSON in which only environment variables are left to fill in.
pub(crate) fn render_json(json: &PartialJson, mask: &Mask) -> String {
    expect_json(serde_json::to_string(&MaskedBody(json, mask)))
}

/// A template whose environment variables are kept by name.
pub(crate) struct MaskedTemplate<'a>(pub(crate) &'a PartialTemplate, pub(crate) &'a Mask);

impl Serialize for MaskedTemplate<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        MaskedText(&self.0.to_string(), self.1).serialize(serializer)
    }
}

/// Names and templates, as an object.
pub(crate) struct TemplatePairs<'a>(
    pub(crate) &'a [(String, PartialTemplate)],
    pub(crate) &'a Mask,
);

impl TemplatePairs<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for TemplatePairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs = self.0.iter();
        serializer.collect_map(pairs.map(|(name, value)| (name, MaskedTemplate(value, self.1))))
    }
}

/// A request body, as a JSON tree.
pub(crate) struct MaskedBody<'a>(pub(crate) &'a PartialJson, pub(crate) &'a Mask);

impl Serialize for MaskedBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(body, mask) = *self;
        match body {
            PartialJson::Raw(raw) => MaskedJson(raw, mask).serialize(serializer),
            PartialJson::Text(text) => MaskedTemplate(text, mask).serialize(serializer),
            PartialJson::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    array.serialize_element(&MaskedBody(item, mask))?;
                }
                array.end()
            }
            PartialJson::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    object.serialize_entry(name, &MaskedBody(value, mask))?;
                }
                object.end()
            }
        }
    }
}
