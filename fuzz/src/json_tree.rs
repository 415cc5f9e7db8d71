//! JSON as a plain tree that keeps duplicate keys: what `serde_json` reads, without any code of ours.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonTree {
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
    Array(Vec<JsonTree>),
    /// Members in order, with duplicates.
    Object(Vec<(String, JsonTree)>),
}

impl JsonTree {
    pub(crate) fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Returns how deep arrays and objects are nested in it.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => {
                let depths = members.iter().map(|(_, value)| value.depth());
                1 + depths.max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Returns whether an object in it has a duplicate key.
    pub(crate) fn has_duplicate_key(&self) -> bool {
        match self {
            Self::Array(items) => items.iter().any(Self::has_duplicate_key),
            Self::Object(members) => members.iter().enumerate().any(|(index, (key, value))| {
                value.has_duplicate_key()
                    || members[..index].iter().any(|(earlier, _)| earlier == key)
            }),
            _ => false,
        }
    }

    /// Returns whether it may grow to `whole`: each string and array is a prefix, and each member is in it.
    pub(crate) fn is_prefix_of(&self, whole: &Self) -> bool {
        match (self, whole) {
            (Self::Text(part), Self::Text(whole)) => whole.starts_with(&**part),
            (Self::Array(parts), Self::Array(whole)) => {
                parts.len() <= whole.len()
                    && parts.iter().zip(whole).all(|(a, b)| a.is_prefix_of(b))
            }
            (Self::Object(parts), Self::Object(whole)) => {
                let same = |((a, part), (b, whole)): (&(String, Self), &(String, Self))| {
                    a == b && part.is_prefix_of(whole)
                };
                parts.len() <= whole.len() && parts.iter().zip(whole).all(same)
            }
            _ => self == whole,
        }
    }
}

impl<'de> Deserialize<'de> for JsonTree {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = JsonTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<JsonTree, E> {
        Ok(JsonTree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonTree, E> {
        Ok(JsonTree::Boolean(value))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "both sides are compared as floats"
    )]
    fn visit_i64<E>(self, value: i64) -> Result<JsonTree, E> {
        Ok(JsonTree::Number(value as f64))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "both sides are compared as floats"
    )]
    fn visit_u64<E>(self, value: u64) -> Result<JsonTree, E> {
        Ok(JsonTree::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<JsonTree, E> {
        Ok(JsonTree::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<JsonTree, E> {
        Ok(JsonTree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonTree, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(JsonTree::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonTree, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(JsonTree::Object(object))
    }
}
