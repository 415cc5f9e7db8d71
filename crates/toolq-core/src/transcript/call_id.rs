//! The id of a call, as the call itself or its result has it. Every dialect's ids are read here.

use std::borrow::Cow;

use crate::json::{JsonKind, JsonText, ParsedObject};

/// Keys under which the results of the dialects name their calls. A conversation may have been put together from several.
const RESULT_KEYS: [&str; 5] = [
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "toolUseId",
    "toolCallId",
];

/// An id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CallId<'a> {
    /// There is none, or what some servers write in its place: nothing, a blank, or the word `null`.
    #[default]
    Missing,
    Text(Cow<'a, str>),
    /// The digits of a number. It names the same call as a text of these digits.
    Number(Cow<'a, str>),
    /// Something that can't name a call.
    Unreadable(JsonKind),
}

impl<'a> CallId<'a> {
    /// Reads the id at `key`.
    pub fn read(object: &ParsedObject<'a>, key: &str) -> Self {
        object.get(key).map_or(Self::Missing, Self::from_json)
    }

    /// Reads the id that a result names: the first of those that it has.
    pub fn of_result(result: &ParsedObject<'a>) -> Self {
        let mut ids = RESULT_KEYS.iter().map(|key| Self::read(result, key));
        ids.find(|id| !id.is_missing()).unwrap_or_default()
    }

    pub fn from_json(value: JsonText<'a>) -> Self {
        match (value.kind(), value.to_text()) {
            (JsonKind::Null, _) => Self::Missing,
            (JsonKind::Number, _) => Self::Number(value.get().into()),
            (_, Some(text)) => Self::from_text(text),
            (kind, None) => Self::Unreadable(kind),
        }
    }

    pub fn from_text(text: Cow<'a, str>) -> Self {
        match text.trim() {
            "" | "null" => Self::Missing,
            _ => Self::Text(text),
        }
    }

    /// Returns what names the call.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }

    pub fn is_missing(&self) -> bool {
        *self == Self::Missing
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    pub fn into_owned(self) -> CallId<'static> {
        match self {
            Self::Missing => CallId::Missing,
            Self::Text(text) => CallId::Text(text.into_owned().into()),
            Self::Number(digits) => CallId::Number(digits.into_owned().into()),
            Self::Unreadable(kind) => CallId::Unreadable(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_text_or_a_number_that_says_something() {
        let read = |json: &'static str| CallId::from_json(JsonText::new(json));
        for blank in ["null", "\"\"", "\" \\n\"", "\"null\""] {
            assert!(read(blank).is_missing(), "{blank}");
        }
        assert_eq!(read("\"a\""), CallId::Text("a".into()));
        assert_eq!(
            read("12345678901234567890").text(),
            Some("12345678901234567890")
        );
        for (other, kind) in [
            ("{}", JsonKind::Object),
            ("[1]", JsonKind::Array),
            ("true", JsonKind::Boolean),
            ("\"\\ud800\"", JsonKind::String),
        ] {
            assert_eq!(read(other), CallId::Unreadable(kind), "{other}");
        }
    }
}
