//! serde's view of a node: either it has the requested type, or the error explains why not.

use std::cell::RefCell;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::text::{escape, is_hidden};
use crate::tools_file::spanned::{FIELD_MARKER, Field, FieldError, suggest_known};
use crate::tools_file::yaml::{YamlContent, YamlEntry, YamlNode};
use crate::types::{FileProblem, Span};

/// The serde name of enums that are deserialized by the kind of their node. Their variants are named `null`, `boolean`,
/// `number`, `text`, `list` or `table`.
const KIND_MARKER: &str = "$kind";

/// Returns a hint for an unknown key of a table with these fields, or `None` to suggest the most similar field.
pub type KeyHint = fn(key: &str, fields: &[&str]) -> Option<&'static str>;

/// Deserializes `node` as a `T` whose fields are [`Field`]s, and returns every problem along with it. `file_name` is
/// the name of the whole file in messages.
pub fn deserialize_node<T: DeserializeOwned>(
    node: &YamlNode,
    file_name: &str,
    key_hint: KeyHint,
) -> (Field<T>, Vec<FileProblem>) {
    let problems = RefCell::new(Vec::new());
    let field = Field::deserialize(NodeDeserializer {
        node,
        key: file_name,
        key_span: node.span,
        in_list: false,
        other_keys: [&[], &[]],
        key_hint,
        problems: &problems,
    });
    (field.unwrap_or_default(), problems.into_inner())
}

/// The serde name of a field whose keys are written among those of the table around it.
const FLATTENED: &str = "$settings";

const EXPECTED_BOOLEAN: &str = "`true` or `false`";

const NO_OTHER_BOOLEANS: &str = "YAML 1.2 has no other booleans";

/// Words that YAML 1.1 reads as booleans.
const YAML_1_1_BOOLEANS: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];

/// A node with the key that names it in messages.
#[derive(Clone, Copy)]
pub(crate) struct NodeDeserializer<'de> {
    node: &'de YamlNode,
    /// The key of the node, or of the list that it belongs to.
    key: &'de str,
    key_span: Span,
    in_list: bool,
    /// The other keys that the node may have, if a part of a table is read from it, and a part of that.
    other_keys: [&'static [&'static str]; 2],
    key_hint: KeyHint,
    problems: &'de RefCell<Vec<FileProblem>>,
}

impl<'de> NodeDeserializer<'de> {
    /// Returns the deserializer for an element of this list.
    pub(crate) fn for_element(self, node: &'de YamlNode) -> Self {
        Self {
            node,
            key_span: node.span,
            in_list: true,
            other_keys: [&[], &[]],
            ..self
        }
    }

    /// Returns the deserializer for the value of an entry of this table.
    pub(crate) fn for_value(self, entry: &'de YamlEntry) -> Self {
        Self {
            node: &entry.value,
            key: &entry.key,
            key_span: entry.key_span,
            in_list: false,
            other_keys: [&[], &[]],
            ..self
        }
    }

    /// Returns the spans of the key and of the node itself.
    pub(crate) fn spans(self) -> (Span, Span) {
        (self.key_span, self.node.span)
    }

    /// Reports why the node is invalid. Lists and tables can span many lines, and null can be empty, so those are
    /// reported at their key.
    pub(crate) fn report(self, error: FieldError) {
        let span = match self.node.content {
            YamlContent::Null | YamlContent::List(_) | YamlContent::Table(_) => self.key_span,
            _ => self.node.span,
        };
        let subject = if self.in_list {
            format!("an element of `{}`", self.key)
        } else {
            format!("`{}`", self.key)
        };
        self.problems
            .borrow_mut()
            .push(error.into_problem(&subject, span));
    }

    fn type_mismatch(self, expected: &dyn Expected, hint: Option<String>) -> FieldError {
        FieldError::WrongType {
            expected: expected.to_string(),
            found: self.node.kind_phrase().to_owned(),
            hint,
        }
    }

    /// Returns what to write instead of a text that looks like a boolean, where one of these `kinds` is expected. Free text
    /// may look like one.
    fn text_as_boolean_hint(self, kinds: &[&str]) -> Option<String> {
        let YamlContent::Text(word) = &self.node.content else {
            return None;
        };
        let word = word.to_lowercase();
        if !kinds.contains(&"boolean") || kinds.contains(&"number") {
            return None;
        }
        match word.as_str() {
            "true" | "false" => Some(format!("write `{word}` without quotes")),
            word if YAML_1_1_BOOLEANS.contains(&word) => Some(NO_OTHER_BOOLEANS.to_owned()),
            "always" => Some("write `true`".to_owned()),
            "never" => Some("write `false`".to_owned()),
            _ => None,
        }
    }

    /// Returns the entries whose keys are in `fields`. Once all fields of the table are known, reports all others.
    fn known_entries(
        self,
        entries: &'de [YamlEntry],
        fields: &'static [&'static str],
    ) -> impl MapAccess<'de, Error = FieldError> {
        let has_more = fields.contains(&FLATTENED);
        if !has_more {
            let keys: Vec<&str> = [self.other_keys[0], self.other_keys[1], fields].concat();
            for entry in entries {
                if !keys.contains(&&*entry.key) {
                    self.report_unknown_key(entry, &keys);
                }
            }
        }
        let known = entries
            .iter()
            .filter(move |entry| fields.contains(&&*entry.key))
            .map(move |entry| (&*entry.key, self.for_value(entry)));
        let rest = Self {
            other_keys: [fields, self.other_keys[0]],
            ..self
        };
        MapDeserializer::new(known.chain(has_more.then_some((FLATTENED, rest))))
    }

    fn report_unknown_key(self, entry: &YamlEntry, keys: &[&str]) {
        let message = format!("unknown key `{}`", escape(&entry.key));
        let label = format!("not a key of `{}`", self.key);
        let odd_space = || {
            let space = entry
                .key
                .chars()
                .find(|c| *c != ' ' && (c.is_whitespace() || is_hidden(*c)))?;
            let code = u32::from(space);
            Some(format!(
                "its U+{code:04X} looks like a space and isn't one: leave it out"
            ))
        };
        let hint = (self.key_hint)(&entry.key, keys)
            .map(str::to_owned)
            .or_else(odd_space)
            .unwrap_or_else(|| suggest_known(&entry.key, keys));
        let problem = FileProblem::error(entry.key_span, message, label);
        self.problems.borrow_mut().push(problem.with_hint(hint));
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer<'de> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match &self.node.content {
            YamlContent::Null => visitor.visit_unit(),
            YamlContent::Bool(value) => visitor.visit_bool(*value),
            YamlContent::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (_, Some(value)) => visitor.visit_i64(value),
                _ => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            YamlContent::Text(text) => visitor.visit_borrowed_str(text),
            YamlContent::List(items) => {
                let items = items.iter().map(|item| self.for_element(item));
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            YamlContent::Table(entries) => {
                let entries = entries
                    .iter()
                    .map(|entry| (&*entry.key, self.for_value(entry)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        if name == FIELD_MARKER {
            visitor.visit_seq(FieldAccess {
                deserializer: self,
                next_index: 0,
            })
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let YamlContent::Table(entries) = &self.node.content else {
            let few = &fields[..fields.len().min(4)];
            let expected = format!("a table with keys such as `{}`", few.join("`, `"));
            let hint = table_hint(fields).map(str::to_owned);
            return Err(self.type_mismatch(&expected.as_str(), hint));
        };
        visitor.visit_map(self.known_entries(entries, fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        if name == KIND_MARKER {
            let kind = self.node.kind_name();
            let hint = self.text_as_boolean_hint(variants);
            if hint.is_some() || !variants.contains(&kind) {
                return Err(self.type_mismatch(&visitor, hint));
            }
            let expected = (&visitor as &dyn Expected).to_string();
            let variant = MapDeserializer::new(std::iter::once((kind, self)));
            let read = visitor.visit_enum(MapAccessDeserializer::new(variant));
            return read.map_err(|error| error.or_expected(expected));
        }
        match &self.node.content {
            YamlContent::Text(word) if variants.contains(&word.as_str()) => {
                visitor.visit_enum(StrDeserializer::new(word))
            }
            YamlContent::Text(word) => Err(FieldError::unknown_word(word, variants)),
            _ => {
                let expected = format!("one of `{}`", variants.join("`, `"));
                Err(self.type_mismatch(&expected.as_str(), None))
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match &self.node.content {
            YamlContent::Bool(value) => visitor.visit_bool(*value),
            YamlContent::Text(word)
                if YAML_1_1_BOOLEANS.contains(&word.to_lowercase().as_str()) =>
            {
                Err(self.type_mismatch(&EXPECTED_BOOLEAN, Some(NO_OTHER_BOOLEANS.to_owned())))
            }
            _ => Err(self.type_mismatch(&EXPECTED_BOOLEAN, None)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match &self.node.content {
            YamlContent::Text(text) => visitor.visit_borrowed_str(text),
            YamlContent::Bool(_) | YamlContent::Number(_) => {
                Err(self
                    .type_mismatch(&"text", Some("put it in quotes to make it text".to_owned())))
            }
            YamlContent::Table(_) => Err(self.type_mismatch(
                &"text",
                Some(
                    "without quotes, `{name}` is a YAML table; put it in quotes to make it text"
                        .to_owned(),
                ),
            )),
            _ => Err(self.type_mismatch(&"text", None)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match &self.node.content {
            YamlContent::List(_) => self.deserialize_any(visitor),
            YamlContent::Text(one) if !one.contains(char::is_whitespace) => {
                let hint = format!("write a list of one element as `[{one}]`");
                Err(self.type_mismatch(&"a list such as `[a, b]`", Some(hint)))
            }
            _ => Err(self.type_mismatch(&"a list such as `[a, b]`", None)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match &self.node.content {
            YamlContent::Table(_) => self.deserialize_any(visitor),
            YamlContent::List(items) => {
                let hint = items
                    .iter()
                    .flat_map(|item| item.texts_at(&["name"]))
                    .next().map(|(name, _)| {
                    format!("the name is the key: write `{name}:` instead of `- name: {name}`, and the rest below it")
                });
                Err(self.type_mismatch(&"a table such as `{name: value}`", hint))
            }
            _ => Err(self.type_mismatch(&"a table such as `{name: value}`", None)),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf option unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, FieldError> for NodeDeserializer<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

// serde's access to the contents of a node. Invalid fields are reported here and skipped.

/// Presents a field as five elements: the start and length of its key, the start and length of its value, and the
/// value, which is omitted if it is invalid.
struct FieldAccess<'de> {
    deserializer: NodeDeserializer<'de>,
    next_index: u8,
}

impl<'de> SeqAccess<'de> for FieldAccess<'de> {
    type Error = FieldError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, FieldError> {
        let deserializer = self.deserializer;
        let (key_span, value_span) = deserializer.spans();
        self.next_index += 1;
        let number = match self.next_index {
            1 => key_span.start,
            2 => key_span.len,
            3 => value_span.start,
            4 => value_span.len,
            _ => {
                let value = seed.deserialize(deserializer);
                return Ok(value.map_err(|error| deserializer.report(error)).ok());
            }
        };
        seed.deserialize(number.into_deserializer()).map(Some)
    }
}

/// Returns what is probably meant where a table with these keys belongs, and something else stands.
fn table_hint(fields: &[&str]) -> Option<&'static str> {
    if fields.contains(&"input_schema") {
        Some("the keys of a tool are indented below its name")
    } else if fields.contains(&"max_backoff") {
        Some("for example `retry: {times: 3, on: [unavailable, timeout]}`")
    } else {
        None
    }
}
