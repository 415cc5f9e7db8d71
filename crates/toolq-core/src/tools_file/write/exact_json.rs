//! Serializes JSON from its text, without a tree of numbers that would round them.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use crate::json::JsonText;

/// A JSON value whose integers of up to 128 bits keep all of their digits.
pub(crate) struct ExactJson<'a>(pub(crate) JsonText<'a>);

impl Serialize for ExactJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.0;
        if let Some(object) = json.object() {
            let members = object.members().iter();
            return serializer.collect_map(members.map(|(key, value)| (key, Self(*value))));
        }
        if let Some(elements) = json.elements() {
            return serializer.collect_seq(elements.into_iter().map(ExactJson));
        }
        if let Some(text) = json.to_text() {
            return serializer.serialize_str(&text);
        }
        match json.get() {
            "null" => serializer.serialize_unit(),
            "true" => serializer.serialize_bool(true),
            "false" => serializer.serialize_bool(false),
            number => serialize_number(number, serializer),
        }
    }
}

fn serialize_number<S: Serializer>(number: &str, serializer: S) -> Result<S::Ok, S::Error> {
    // JSON has a negative zero, which only a float keeps.
    if number != "-0" {
        if let Ok(integer) = number.parse::<i128>() {
            return serializer.serialize_i128(integer);
        }
        if let Ok(integer) = number.parse::<u128>() {
            return serializer.serialize_u128(integer);
        }
    }
    let float: f64 = number.parse().map_err(S::Error::custom)?;
    serializer.serialize_f64(float)
}
