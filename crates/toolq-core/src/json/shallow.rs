//! Validates a JSON value and splits its top-level object into members on the way.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::value::{JsonMember, JsonText, ParsedObject};

/// A validated value. Holds the members if the value is an object.
pub(crate) struct ShallowJson<'a>(Option<Vec<JsonMember<'a>>>);

impl<'a> ShallowJson<'a> {
    /// Returns the object, given its `text`, or `None` if the value isn't an object.
    pub fn into_object(self, text: &'a str) -> Option<ParsedObject<'a>> {
        let json = JsonText::new(text);
        self.0.map(|members| ParsedObject { json, members })
    }
}

impl<'de> Deserialize<'de> for ShallowJson<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(ShallowJsonVisitor)
    }
}

struct ShallowJsonVisitor;

impl<'de> Visitor<'de> for ShallowJsonVisitor {
    type Value = ShallowJson<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ShallowJson<'de>, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(MemberKey(key)) = map.next_key()? {
            members.push((key, map.next_value::<&RawValue>()?.into()));
        }
        Ok(ShallowJson(Some(members)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ShallowJson<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ShallowJson(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<ShallowJson<'de>, E> {
        Ok(ShallowJson(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<ShallowJson<'de>, E> {
        Ok(ShallowJson(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<ShallowJson<'de>, E> {
        Ok(ShallowJson(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<ShallowJson<'de>, E> {
        Ok(ShallowJson(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<ShallowJson<'de>, E> {
        Ok(ShallowJson(None))
    }

    fn visit_unit<E>(self) -> Result<ShallowJson<'de>, E> {
        Ok(ShallowJson(None))
    }
}

/// A key. Borrowed unless it contains escapes.
#[derive(serde::Deserialize)]
struct MemberKey<'a>(#[serde(borrow)] Cow<'a, str>);
