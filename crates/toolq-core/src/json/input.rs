//! The input of a call, and why a text isn't one.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::kind::JsonKind;
use crate::json::strict::check_json;
use crate::json::value::JsonText;

/// Maximum size of one call's input, in bytes.
pub const MAX_INPUT_BYTES: usize = 8 << 20;
/// Maximum nesting depth of arrays and objects in an input.
pub const MAX_INPUT_DEPTH: usize = 64;
/// Maximum number of values in an input.
pub const MAX_INPUT_VALUES: usize = 100_000;

/// The input of a call: the text of one JSON object, exactly as received, so that numbers keep their digits and keys
/// their order.
///
/// No object in it has a duplicate key. Parsers disagree on which of two values counts (RFC 8259, section 4), so the
/// tool could see a different value than the one that was validated. Clones share the text.
#[derive(Debug, Clone)]
pub struct Input(Arc<RawValue>);

/// Why a text isn't a valid input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidInput {
    /// The input is missing or `null`.
    #[error("the input is missing; pass an object, or `{{}}` for no arguments")]
    Missing,
    /// The input is JSON, but not an object.
    #[error("the input is {0}; it must be an object")]
    NotAnObject(JsonKind),
    /// The input isn't valid JSON.
    #[error("the input is not valid JSON: {0}")]
    NotJson(String),
    /// An object has a duplicate key.
    #[error("the key {key:?} appears twice in one object")]
    DuplicateKey {
        /// JSON pointer to the object.
        pointer: String,
        /// The duplicate key.
        key: String,
    },
    /// The input exceeds one of the limits.
    #[error("the input {0}")]
    TooLarge(String),
    /// The call has no name, or its name isn't a string.
    #[error("the call has no name")]
    MissingName,
    /// The id of the call is neither a text nor a number, so no result can name the call.
    #[error("the id of the call is {0}; it must be a text")]
    UnreadableId(JsonKind),
    /// What may be the input stands under a key that isn't one of inputs, or under one of several.
    #[error("the input is missing, but what is under the key {0:?} may be it")]
    OtherKey(String),
    /// Only a part of the input is there.
    #[error("the input is incomplete")]
    Incomplete,
    /// It isn't a call of a kind that toolq runs.
    #[error("toolq doesn't run calls of the kind {0:?}")]
    UnknownKind(String),
    /// A session log says why the input wasn't valid, but doesn't have its text.
    #[error("{0}")]
    Recorded(String),
}

impl InvalidInput {
    /// The top-level object has this duplicate key.
    pub(crate) fn duplicate_key(key: &str) -> Self {
        Self::DuplicateKey {
            pointer: String::new(),
            key: key.to_owned(),
        }
    }
}

impl Input {
    /// Parses one JSON object that has no duplicate keys and stays within the limits.
    ///
    /// # Errors
    /// The first problem found.
    pub fn parse(text: &str) -> Result<Self, InvalidInput> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        check_size(text)?;
        let raw = serde_json::from_str(text);
        Self::from_raw(raw.map_err(|error| InvalidInput::NotJson(error.to_string()))?)
    }

    /// Creates the input `{KEY: TEXT}`.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub(crate) fn of_text(key: &str, text: &str) -> Result<Self, InvalidInput> {
        Self::parse(&format!("{{{}:{}}}", Value::from(key), Value::from(text)))
    }

    /// Like [`parse`](Self::parse), for a value that has already been parsed.
    pub(crate) fn from_json(value: JsonText) -> Result<Self, InvalidInput> {
        let Some(raw) = value.raw() else {
            return Self::parse(value.get());
        };
        check_size(raw.get())?;
        Self::from_raw(raw)
    }

    fn from_raw(raw: &RawValue) -> Result<Self, InvalidInput> {
        match JsonText::from(raw).kind() {
            JsonKind::Object => {}
            JsonKind::Null => return Err(InvalidInput::Missing),
            other => return Err(InvalidInput::NotAnObject(other)),
        }
        check_json(raw.get())?;
        Ok(Self(raw.to_owned().into()))
    }

    /// Returns the input `{}`.
    pub fn empty() -> Self {
        Self(
            RawValue::from_string("{}".to_owned())
                .unwrap_or_default()
                .into(),
        )
    }

    /// Returns the text exactly as received.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the text as a raw JSON value.
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Returns the text as a raw JSON value that shares its bytes.
    pub fn share(&self) -> Arc<RawValue> {
        Arc::clone(&self.0)
    }

    /// Parses the input into a tree. Numbers beyond 64 bits lose digits, so use it to validate, never to pass values
    /// on.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// Returns the value at `path` with its digits intact, or `None` if a key is missing or its parent isn't an object.
    pub fn value_at(&self, path: &[String]) -> Option<&RawValue> {
        path.iter()
            .try_fold(&*self.0, |value, key| find_member(value, key))
    }
}

fn find_member<'a>(value: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    let members: Vec<(std::borrow::Cow<'a, str>, &'a RawValue)> =
        serde_json::from_str::<BorrowedMembers<'a>>(value.get())
            .ok()?
            .0;
    members
        .into_iter()
        .find_map(|(name, value)| (name == key).then_some(value))
}

/// The members of an object, borrowed from its text.
struct BorrowedMembers<'a>(Vec<(std::borrow::Cow<'a, str>, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for BorrowedMembers<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct MemberVisitor;
        impl<'de> Visitor<'de> for MemberVisitor {
            type Value = BorrowedMembers<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<BorrowedMembers<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<KeyText<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(BorrowedMembers(members))
            }
        }
        reader.deserialize_map(MemberVisitor)
    }
}

/// A key, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct KeyText<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

fn check_size(text: &str) -> Result<(), InvalidInput> {
    if text.len() <= MAX_INPUT_BYTES {
        return Ok(());
    }
    let message = format!("has {} bytes; the limit is {MAX_INPUT_BYTES}", text.len());
    Err(InvalidInput::TooLarge(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input of more than 64 levels, 8 MiB or 100,000 values, a number that no 64-bit float holds, and a lone
    /// surrogate.
    #[test]
    fn invalid_inputs_are_rejected() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65));
        let bomb = "[".repeat(1_000_000);
        let wide = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(MAX_INPUT_VALUES));
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_INPUT_BYTES));
        for text in [
            &deep,
            &bomb,
            &wide,
            &large,
            "",
            "null",
            "3",
            "{",
            r#"{"a":1e400}"#,
            r#"{"a":1e-401}"#,
            r#"{"a":0e99999999999999999999}"#,
            r#"{"a":"\ud800"}"#,
        ] {
            assert!(Input::parse(text).is_err(), "{text:.40}");
        }
        assert!(matches!(
            Input::parse(&deep),
            Err(InvalidInput::TooLarge(_))
        ));
        assert!(matches!(
            Input::parse(&wide),
            Err(InvalidInput::TooLarge(_))
        ));
    }

    /// Digits are passed on as written.
    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"a":{"n":12345678901234567890123,"f":1.0,"z":-0,"e":1E2,"small":1e-400}}"#;
        let input = Input::parse(text).unwrap();
        let at = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
            input.value_at(&path).map(|raw| raw.get().to_owned())
        };
        assert_eq!(at(&["a", "n"]).as_deref(), Some("12345678901234567890123"));
        assert_eq!(at(&["a", "f"]).as_deref(), Some("1.0"));
        assert_eq!(at(&["a", "e"]).as_deref(), Some("1E2"));
        assert_eq!(at(&["a", "missing"]), None);
        assert_eq!(input.text(), text);
    }
}
