use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::strict::check_json;
use crate::json::value::Json;

/// The largest input of one call, in bytes.
pub const MAX_INPUT_BYTES: usize = 8 << 20;
/// How deep arrays and objects of an input may be nested.
pub const MAX_INPUT_DEPTH: usize = 64;
/// How many values an input may have.
pub const MAX_INPUT_NODES: usize = 100_000;

/// The input of a call: the text of one JSON object, exactly as it came, so that numbers keep their digits and keys
/// their order.
///
/// No object in it has a key twice: readers disagree on which of the two counts (RFC 8259, section 4), so what would be
/// validated need not be what a tool reads. Copies share the text.
#[derive(Debug, Clone)]
pub struct Input(Arc<RawValue>);

/// Why a text is no input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// There was no input at all, or it was `null`.
    #[error("there is no input; an object is needed, `{{}}` for no arguments")]
    Missing,
    /// It is JSON, but no object.
    #[error("the input is {0}; an object is needed")]
    NotAnObject(&'static str),
    /// It is no JSON.
    #[error("the input is no JSON: {0}")]
    NotJson(String),
    /// An object has a key twice.
    #[error("the key {key:?} stands twice in one object")]
    DuplicateKey {
        /// JSON pointer of the object.
        pointer: String,
        /// The key.
        key: String,
    },
    /// It is over one of the limits.
    #[error("the input {0}")]
    TooLarge(String),
    /// The block has no name, or one that is no string.
    #[error("the call has no name")]
    NoName,
}

impl InputFault {
    /// The outermost object has this key twice.
    pub(crate) fn twice(key: &str) -> Self {
        Self::DuplicateKey {
            pointer: String::new(),
            key: key.to_owned(),
        }
    }
}

impl Input {
    /// Checks that `text` is one JSON object without duplicate keys and within the limits.
    ///
    /// # Errors
    /// The first fault found.
    pub fn parse(text: &str) -> Result<Self, InputFault> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        may_be_input(text)?;
        let raw = serde_json::from_str(text);
        Self::checked(raw.map_err(|error| InputFault::NotJson(error.to_string()))?)
    }

    /// Like [`parse`](Self::parse), for a value that a parser read already.
    pub(crate) fn of(value: Json) -> Result<Self, InputFault> {
        let Some(raw) = value.raw() else {
            return Self::parse(value.get());
        };
        may_be_input(raw.get())?;
        Self::checked(raw)
    }

    fn checked(raw: &RawValue) -> Result<Self, InputFault> {
        check_json(raw.get())?;
        Ok(Self(raw.to_owned().into()))
    }

    /// `{}`.
    pub fn empty() -> Self {
        Self(
            RawValue::from_string("{}".to_owned())
                .unwrap_or_default()
                .into(),
        )
    }

    /// The text as it came.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The text as a JSON value of its own.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The tree; numbers beyond 64 bits lose digits in it, so it is for validating, not for passing on.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// The value at `path`, digits kept; none where a part is missing or stands in no object.
    pub fn at(&self, path: &[String]) -> Option<&RawValue> {
        path.iter()
            .try_fold(&*self.0, |value, key| member(value, key))
    }
}

fn member<'a>(value: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    let members: Vec<(std::borrow::Cow<'a, str>, &'a RawValue)> =
        serde_json::from_str::<Members<'a>>(value.get()).ok()?.0;
    members
        .into_iter()
        .find_map(|(name, value)| (name == key).then_some(value))
}

/// An object's members, borrowed.
struct Members<'a>(Vec<(std::borrow::Cow<'a, str>, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<KeyText<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        reader.deserialize_map(Collect)
    }
}

/// A key, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct KeyText<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

/// Refuses at once what is too long or begins like something else.
fn may_be_input(text: &str) -> Result<(), InputFault> {
    if text.len() > MAX_INPUT_BYTES {
        let message = format!("has {} bytes, more than {MAX_INPUT_BYTES}", text.len());
        return Err(InputFault::TooLarge(message));
    }
    other_than_object(text).map_or(Ok(()), Err)
}

fn other_than_object(text: &str) -> Option<InputFault> {
    Some(match text.as_bytes().first()? {
        b'[' => InputFault::NotAnObject("an array"),
        b'"' => InputFault::NotAnObject("a string"),
        b't' | b'f' => InputFault::NotAnObject("a boolean"),
        b'0'..=b'9' | b'-' => InputFault::NotAnObject("a number"),
        b'n' if text == "null" => InputFault::Missing,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 5: the last of two keys would win silently.
    #[test]
    fn duplicate_keys_are_found_at_every_level() {
        for (text, pointer) in [
            (r#"{"path":"a","path":"b"}"#, ""),
            (r#"{"path":"a","p\u0061th":"b"}"#, ""),
            (r#"{"a":[{"b":{"c":1,"c":1}}]}"#, "/a/0/b"),
        ] {
            match Input::parse(text) {
                Err(InputFault::DuplicateKey { pointer: found, .. }) => assert_eq!(found, pointer),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(Input::parse(r"[1]").is_err());
        assert!(Input::parse(r#"{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}"#).is_ok());
    }

    /// FAULTS 3, 10, 11, 13, 15.
    #[test]
    fn what_is_no_input_says_so() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65));
        let bomb = "[".repeat(1_000_000);
        let wide = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(MAX_INPUT_NODES));
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
            r#"{"a":"\ud800"}"#,
        ] {
            assert!(Input::parse(text).is_err(), "{text:.40}");
        }
        assert!(matches!(Input::parse(&deep), Err(InputFault::TooLarge(_))));
        assert!(matches!(Input::parse(&wide), Err(InputFault::TooLarge(_))));
    }

    /// FAULTS 10: digits are passed on as they were written.
    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"a":{"n":12345678901234567890123,"f":1.0,"z":-0,"e":1E2}}"#;
        let input = Input::parse(text).unwrap();
        let at = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
            input.at(&path).map(|raw| raw.get().to_owned())
        };
        assert_eq!(at(&["a", "n"]).as_deref(), Some("12345678901234567890123"));
        assert_eq!(at(&["a", "f"]).as_deref(), Some("1.0"));
        assert_eq!(at(&["a", "e"]).as_deref(), Some("1E2"));
        assert_eq!(at(&["a", "missing"]), None);
        assert_eq!(input.text(), text);
    }
}
