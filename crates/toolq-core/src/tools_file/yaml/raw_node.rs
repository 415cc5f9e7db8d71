//! Deserializes nodes as written, mistakes included: a key may repeat or not be text, and YAML's own tags are accepted.
//! The `parse` module finds those mistakes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{Location, Spanned};

use crate::types::Span;

/// A node that hasn't been checked.
pub(crate) struct RawNode {
    pub(crate) span: Span,
    pub(crate) content: RawContent,
}

/// The content of a [`RawNode`].
pub(crate) enum RawContent {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<RawNode>),
    Table(Vec<(RawNode, RawNode)>),
}

/// Converts a location to a span in bytes. For a list or table it covers only the first character.
pub(crate) fn to_span(location: Location) -> Span {
    let span = location.span();
    let bytes = |count: Option<u64>| count.and_then(|count| usize::try_from(count).ok());
    Span {
        start: bytes(span.byte_offset()).unwrap_or_default(),
        len: bytes(span.byte_len()).unwrap_or_default(),
    }
}

impl<'de> Deserialize<'de> for RawNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Spanned::<RawContent>::deserialize(deserializer)?;
        Ok(Self {
            span: to_span(node.defined),
            content: node.value,
        })
    }
}

impl<'de> Deserialize<'de> for RawContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawContentVisitor)
    }
}

struct RawContentVisitor;

impl<'de> Visitor<'de> for RawContentVisitor {
    type Value = RawContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<RawContent, E> {
        Ok(RawContent::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<RawContent, E> {
        Ok(RawContent::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<RawContent, E> {
        Ok(RawContent::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<RawContent, E> {
        Ok(RawContent::Number(value.into()))
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<RawContent, E> {
        Number::from_f64(value)
            .map(RawContent::Number)
            .ok_or_else(|| E::custom("JSON can't represent this number"))
    }
    fn visit_str<E>(self, value: &str) -> Result<RawContent, E> {
        Ok(RawContent::Text(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<RawContent, E> {
        Ok(RawContent::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawContent, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawContent::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawContent, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = map.next_entry()? {
            table.push(entry);
        }
        Ok(RawContent::Table(table))
    }
}
