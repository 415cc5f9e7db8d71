//! Deserializes YAML nodes into typed fields that know their position. Every invalid value is reported, and no error
//! hides another.

pub(crate) mod deserializer;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{
    Deserialize, Deserializer, Error, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};

use crate::text::suggest_name;
use crate::types::{FileProblem, Span};

/// The serde name with which a [`Field`] requests its spans.
pub(crate) const FIELD_MARKER: &str = "$setting";

/// The value of a key or list element, which may be missing or invalid.
///
/// serde stops at the first error. Here, the error of a field becomes a problem with a span, and deserialization continues
/// with the next value. Unknown keys are found from the field names that the derived code passes, so a struct definition is
/// all it takes.
#[derive(Debug, Clone, Default)]
pub enum Field<T> {
    /// The key is missing.
    #[default]
    Missing,
    /// The value is invalid, which has been reported.
    Invalid,
    /// A value of the right type. It is boxed because few of the many keys of a table are there.
    Valid(Box<Spanned<T>>),
}

/// A value and its position in the text.
#[derive(Debug, Clone)]
pub struct Spanned<T> {
    /// The span of its key; for an element of a list, of the element itself.
    pub key_span: Span,
    /// The span of the value.
    pub span: Span,
    /// The deserialized value.
    pub value: T,
}

impl<T> Field<T> {
    /// Returns the value with its spans, if it is valid.
    pub fn spanned(&self) -> Option<&Spanned<T>> {
        match self {
            Self::Valid(spanned) => Some(spanned),
            _ => None,
        }
    }

    /// Returns the value to change it, if it is valid.
    pub fn value_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Valid(spanned) => Some(&mut spanned.value),
            _ => None,
        }
    }

    /// Returns the value, if it is valid.
    pub fn value(&self) -> Option<&T> {
        self.spanned().map(|spanned| &spanned.value)
    }

    /// Returns the span of the key, if the value is valid.
    pub fn key_span(&self) -> Option<Span> {
        self.spanned().map(|spanned| spanned.key_span)
    }

    /// Returns this value, or else that of the layer below.
    pub fn or(&self, lower: &Self) -> Self
    where
        T: Clone,
    {
        if self.is_missing() { lower } else { self }.clone()
    }

    /// Like [`or`](Self::or), with `merge` for two valid values.
    pub fn over(&self, lower: &Self, merge: fn(&Spanned<T>, &Spanned<T>) -> T) -> Self
    where
        T: Clone,
    {
        match (self, lower) {
            (Self::Valid(upper), Self::Valid(lower)) => Self::Valid(Box::new(Spanned {
                value: merge(upper, lower),
                ..**upper
            })),
            _ => self.or(lower),
        }
    }

    /// Whether the key is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

impl<T: Copy> Field<T> {
    /// Returns a copy of the value, if it is valid.
    pub fn copied(&self) -> Option<T> {
        self.value().copied()
    }
}

impl<T: PartialOrd> Field<T> {
    /// Returns the value if it is outside of these limits.
    pub fn outside(&self, limits: impl RangeBounds<T>) -> Option<&Spanned<T>> {
        self.spanned()
            .filter(|given| !limits.contains(&given.value))
    }
}

impl<T> Field<Vec<Field<T>>> {
    /// Returns the valid elements of the list. Without a valid list, it is empty.
    pub fn items(&self) -> impl Iterator<Item = &Spanned<T>> {
        self.value()
            .into_iter()
            .flatten()
            .filter_map(Field::spanned)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(FIELD_MARKER, FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

/// Reads the five elements that `FieldAccess` presents.
impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its spans")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Field<T>, A::Error> {
        let mut span = || -> Result<Span, A::Error> {
            Ok(Span {
                start: parts.next_element()?.unwrap_or_default(),
                len: parts.next_element()?.unwrap_or_default(),
            })
        };
        let (key, span) = (span()?, span()?);
        Ok(parts.next_element()?.map_or(Field::Invalid, |value| {
            Field::Valid(Box::new(Spanned {
                key_span: key,
                span,
                value,
            }))
        }))
    }
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A table whose keys are names chosen by the author, in the order of the file.
#[derive(Debug, Clone)]
pub struct SpannedTable<T>(pub Vec<(String, Field<T>)>);

impl<T> SpannedTable<T> {
    /// Returns the entries with valid values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Spanned<T>)> {
        self.0
            .iter()
            .filter_map(|(name, field)| Some((name.as_str(), field.spanned()?)))
    }
}

impl<T> Field<SpannedTable<T>> {
    /// Returns the entries with valid values. Without a valid table, there are no entries.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Spanned<T>)> {
        self.value().into_iter().flat_map(SpannedTable::entries)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SpannedTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor(PhantomData))
    }
}

struct TableVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
    type Value = SpannedTable<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SpannedTable<T>, A::Error> {
        let mut entries = Vec::with_capacity(map.size_hint().unwrap_or_default());
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(SpannedTable(entries))
    }
}

impl<T: JsonSchema> JsonSchema for SpannedTable<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Table_of_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}

/// Why a value is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{self:?}")]
pub(crate) enum FieldError {
    /// The value has the wrong type.
    WrongType {
        /// What is expected, as in "must be …".
        expected: String,
        /// What was found, as in "this is …".
        found: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The text isn't one of the known words.
    UnknownWord {
        found: String,
        known: &'static [&'static str],
    },
    /// Anything else. The part after `; ` becomes the hint.
    Other(String),
}

impl FieldError {
    /// Returns the error for a text that isn't one of the `known` words.
    pub(crate) fn unknown_word(found: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownWord {
            found: found.to_owned(),
            known,
        }
    }

    /// If a word is like none of the known ones, says all that may stand there: words are only a part of it.
    pub(crate) fn or_expected(self, expected: String) -> Self {
        match self {
            Self::UnknownWord { found, known }
                if suggest_name(&found, known.iter().copied()).is_none() =>
            {
                Self::WrongType {
                    expected,
                    found: format!("`{found}`"),
                    hint: None,
                }
            }
            error => error,
        }
    }

    /// Converts the error into a problem at `span`. `subject` names the key or the list element.
    pub(crate) fn into_problem(self, subject: &str, span: Span) -> FileProblem {
        match self {
            Self::WrongType {
                expected,
                found,
                hint,
            } => FileProblem {
                hint,
                ..FileProblem::error(
                    span,
                    format!("{subject} must be {expected}"),
                    format!("this is {found}"),
                )
            },
            Self::UnknownWord { found, known } => {
                let message = format!("{subject} cannot be `{found}`");
                FileProblem::error(span, message, "unknown value")
                    .with_hint(suggest_known(&found, known))
            }
            Self::Other(message) => match message.split_once("; ") {
                Some((message, hint)) => FileProblem::error(span, message, "").with_hint(hint),
                None => FileProblem::error(span, message, ""),
            },
        }
    }
}

/// Returns "did you mean `timeout`?", or lists all known words if no word is similar.
pub(crate) fn suggest_known(found: &str, known: &[&str]) -> String {
    if let Some(near) = suggest_name(found, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let known: Vec<String> = known
        .iter()
        .filter(|word| !word.starts_with('$'))
        .map(|word| format!("`{word}`"))
        .collect();
    format!("known here: {}", known.join(", "))
}

impl Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let number = expected.strip_prefix(['u', 'i']);
        let is_whole = number.is_some_and(|bits| bits.parse::<u8>().is_ok());
        Self::WrongType {
            expected: if expected == "u16" {
                "a whole number from 0 to 65535".to_owned()
            } else if is_whole {
                "a whole number, 0 or more".to_owned()
            } else if expected == "f64" {
                "a number".to_owned()
            } else {
                expected
            },
            found: match found {
                Unexpected::Str(_) => "text".to_owned(),
                Unexpected::Seq => "a list".to_owned(),
                Unexpected::Map => "a table".to_owned(),
                Unexpected::Unit => "null".to_owned(),
                Unexpected::Unsigned(number) => number.to_string(),
                Unexpected::Signed(number) => number.to_string(),
                Unexpected::Float(number) => number.to_string(),
                other => other.to_string(),
            },
            hint: None,
        }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }
}
