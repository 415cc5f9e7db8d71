//! A tree of nodes → typed structs, every wrong value reported and none in the way of the others.
//!
//! serde stops at the first error. Here each value that may be wrong stands in a [`Setting`]: its error becomes a
//! problem at its place, and reading goes on behind it. Unknown keys are found from the fields that the derived code
//! names, so a struct is all that is to write.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::tools_file::spanned::reader::Reader;
use crate::tools_file::yaml::Node;
use crate::types::{Problem, Span};

/// The name by which an enum asks to be read by the kind of its node: its variants are named `null`, `boolean`,
/// `number`, `text`, `list` or `table`.
pub(crate) const BY_KIND: &str = "$kind";
/// The name by which a setting asks for its places.
pub(crate) const SETTING: &str = "$setting";

/// What to do about an unknown key of a table with these fields, where more is known than that it is like one of them.
pub type Cure = fn(key: &str, fields: &[&str]) -> Option<&'static str>;

/// Reads `node` as a `T`, whose fields are settings; `file` is what a person calls the whole.
pub fn read<T: DeserializeOwned>(
    node: &Node,
    file: &str,
    cure: Cure,
) -> (Setting<T>, Vec<Problem>) {
    let problems = RefCell::new(Vec::new());
    let setting = Setting::deserialize(Reader::root(node, file, cure, &problems));
    (setting.unwrap_or_default(), problems.into_inner())
}

/// What stands, or does not stand, behind a key or in a list.
#[derive(Debug, Clone, Default)]
pub enum Setting<T> {
    /// The key is not there.
    #[default]
    Missing,
    /// It is there, but its value is none, and that is reported.
    Wrong,
    /// A value of the right type.
    Given(Placed<T>),
}

/// A value and its places in the text.
#[derive(Debug, Clone)]
pub struct Placed<T> {
    /// The key that it stands behind; in a list, the value itself.
    pub key: Span,
    /// The value itself.
    pub span: Span,
    /// What it is.
    pub value: T,
}

impl<T> Setting<T> {
    /// The value with its places, where there is a right one.
    pub fn given(&self) -> Option<&Placed<T>> {
        match self {
            Self::Given(placed) => Some(placed),
            _ => None,
        }
    }

    /// The value, where there is a right one.
    pub fn value(&self) -> Option<&T> {
        self.given().map(|placed| &placed.value)
    }

    /// Whether the key is not there at all.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

impl<T> Setting<Vec<Setting<T>>> {
    /// The right elements of a list; none where there is no list.
    pub fn items(&self) -> impl Iterator<Item = &Placed<T>> {
        self.value()
            .into_iter()
            .flatten()
            .filter_map(Setting::given)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_newtype_struct(SETTING, SettingVisitor(PhantomData))
    }
}

struct SettingVisitor<T>(PhantomData<T>);

/// The reader shows a setting as five elements: the start and length of its key and of itself, and its value, which is
/// left out where it is wrong.
impl<'de, T: Deserialize<'de>> Visitor<'de> for SettingVisitor<T> {
    type Value = Setting<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value and its places")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Setting<T>, A::Error> {
        let mut span = || -> Result<Span, A::Error> {
            Ok(Span {
                start: parts.next_element()?.unwrap_or_default(),
                len: parts.next_element()?.unwrap_or_default(),
            })
        };
        let (key, span) = (span()?, span()?);
        Ok(parts.next_element()?.map_or(Setting::Wrong, |value| {
            Setting::Given(Placed { key, span, value })
        }))
    }
}

impl<T: JsonSchema> JsonSchema for Setting<T> {
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

/// A table whose keys are names that its author chose, in the order of the file.
#[derive(Debug, Clone)]
pub struct Table<T>(pub Vec<(String, Setting<T>)>);

impl<T> Table<T> {
    /// The entries with right values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Placed<T>)> {
        self.0
            .iter()
            .filter_map(|(name, setting)| Some((name.as_str(), setting.given()?)))
    }
}

impl<T> Setting<Table<T>> {
    /// The entries with right values; none where there is no table.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Placed<T>)> {
        self.value().into_iter().flat_map(Table::entries)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_map(TableVisitor(PhantomData))
    }
}

struct TableVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
    type Value = Table<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<T>, A::Error> {
        let mut entries = Vec::with_capacity(map.size_hint().unwrap_or_default());
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Table(entries))
    }
}

impl<T: JsonSchema> JsonSchema for Table<T> {
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
