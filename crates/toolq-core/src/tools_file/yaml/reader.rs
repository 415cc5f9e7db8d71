//! serde-saphyr's stream → nodes as they stand in the text, faults and all: a key may come twice or be no string, and
//! tags are still there.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{Location, Spanned};

use crate::types::Span;

/// A node as it came.
pub(crate) struct Raw {
    pub(crate) span: Span,
    pub(crate) data: RawData,
}

/// What a node holds.
pub(crate) enum RawData {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Raw>),
    Table(Vec<(Raw, Raw)>),
}

/// A location in bytes. A container's location is only its first character.
pub(crate) fn span(location: Location) -> Span {
    let span = location.span();
    let bytes = |count: Option<u64>| count.and_then(|count| usize::try_from(count).ok());
    Span {
        start: bytes(span.byte_offset()).unwrap_or_default(),
        len: bytes(span.byte_len()).unwrap_or_default(),
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let node = Spanned::<RawData>::deserialize(reader)?;
        Ok(Self {
            span: span(node.defined),
            data: node.value,
        })
    }
}

impl<'de> Deserialize<'de> for RawData {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Untyped)
    }
}

struct Untyped;

impl<'de> Visitor<'de> for Untyped {
    type Value = RawData;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<RawData, E> {
        Ok(RawData::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<RawData, E> {
        Ok(RawData::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<RawData, E> {
        Ok(RawData::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<RawData, E> {
        Ok(RawData::Number(value.into()))
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<RawData, E> {
        Number::from_f64(value)
            .map(RawData::Number)
            .ok_or_else(|| E::custom("JSON has no such number"))
    }
    fn visit_str<E>(self, value: &str) -> Result<RawData, E> {
        Ok(RawData::Text(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<RawData, E> {
        Ok(RawData::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawData, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawData::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawData, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = map.next_entry()? {
            table.push(entry);
        }
        Ok(RawData::Table(table))
    }
}
