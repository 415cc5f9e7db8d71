//! A value that the parser validates, opened on the way.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::value::{Json, Member, Object};

/// A value that was validated and, if it is an object, opened on the way.
pub(crate) struct Opened<'a>(Option<Vec<Member<'a>>>);

impl<'a> Opened<'a> {
    /// The object, whose text is given; none where the value is something else.
    pub fn object(self, text: &'a str) -> Option<Object<'a>> {
        let json = Json::new(text);
        self.0.map(|members| Object { json, members })
    }
}

impl<'de> Deserialize<'de> for Opened<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Open)
    }
}

struct Open;

impl<'de> Visitor<'de> for Open {
    type Value = Opened<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Opened<'de>, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(Key(key)) = map.next_key()? {
            members.push((key, map.next_value::<&RawValue>()?.into()));
        }
        Ok(Opened(Some(members)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Opened<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Opened(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Opened<'de>, E> {
        Ok(Opened(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Opened<'de>, E> {
        Ok(Opened(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Opened<'de>, E> {
        Ok(Opened(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Opened<'de>, E> {
        Ok(Opened(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Opened<'de>, E> {
        Ok(Opened(None))
    }

    fn visit_unit<E>(self) -> Result<Opened<'de>, E> {
        Ok(Opened(None))
    }
}

/// A key, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
