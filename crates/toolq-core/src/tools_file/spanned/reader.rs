//! serde's view of a node: it is of the type that is asked for, or why not.

use std::cell::RefCell;

use serde::de::{Deserializer, Expected, Visitor};
use serde::forward_to_deserialize_any;

use crate::tools_file::spanned::access::{Entries, Items, Parts, Variant};
use crate::tools_file::spanned::fault::{Fault, advice};
use crate::tools_file::spanned::field::{BY_KIND, Cure, SETTING};
use crate::tools_file::yaml::{Data, Entry, Node};
use crate::types::{Problem, Span};

const BOOLEAN: &str = "`true` or `false`";
/// Words that older YAML takes for booleans.
const YES_AND_NO: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];

/// A node under its key.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'de> {
    node: &'de Node,
    /// The key that it stands behind, or whose list it stands in.
    key: &'de str,
    key_span: Span,
    in_list: bool,
    cure: Cure,
    problems: &'de RefCell<Vec<Problem>>,
}

impl<'de> Reader<'de> {
    pub(crate) fn root(
        node: &'de Node,
        file: &'de str,
        cure: Cure,
        problems: &'de RefCell<Vec<Problem>>,
    ) -> Self {
        Self {
            node,
            key: file,
            key_span: node.span,
            in_list: false,
            cure,
            problems,
        }
    }

    /// An element of this list.
    pub(crate) fn element(self, node: &'de Node) -> Self {
        Self {
            node,
            key_span: node.span,
            in_list: true,
            ..self
        }
    }

    /// The value of an entry of this table.
    pub(crate) fn value(self, entry: &'de Entry) -> Self {
        Self {
            node: &entry.value,
            key: &entry.key,
            key_span: entry.key_span,
            in_list: false,
            ..self
        }
    }

    /// Where its key stands, and where it stands itself.
    pub(crate) fn places(self) -> (Span, Span) {
        (self.key_span, self.node.span)
    }

    /// Reports why it is none. Many lines are named by their key, and so is nothing.
    pub(crate) fn report(self, fault: Fault) {
        let place = match self.node.data {
            Data::Null | Data::List(_) | Data::Table(_) => self.key_span,
            _ => self.node.span,
        };
        let subject = if self.in_list {
            format!("an element of `{}`", self.key)
        } else {
            format!("`{}`", self.key)
        };
        self.problems
            .borrow_mut()
            .push(fault.problem(&subject, place));
    }

    fn mismatch(self, expected: &dyn Expected, hint: Option<String>) -> Fault {
        Fault::Type {
            expected: expected.to_string(),
            found: self.node.kind().to_owned(),
            hint,
        }
    }

    /// The entries whose keys are in `fields`; any other is reported.
    fn known_entries(self, entries: &'de [Entry], fields: &'static [&'static str]) -> Entries<'de> {
        let (known, unknown): (Vec<_>, Vec<_>) = entries
            .iter()
            .partition(|entry| fields.contains(&entry.key.as_str()));
        for entry in unknown {
            let message = format!("unknown key `{}`", entry.key);
            let label = format!("no key of `{}`", self.key);
            let problem = Problem::error(entry.key_span, message, label);
            let cure = (self.cure)(&entry.key, fields).map(str::to_owned);
            let hint = cure.unwrap_or_else(|| advice(&entry.key, fields));
            self.problems.borrow_mut().push(problem.with_hint(hint));
        }
        Entries::new(self, known)
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.data {
            Data::Null => visitor.visit_unit(),
            Data::Bool(value) => visitor.visit_bool(*value),
            Data::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (_, Some(value)) => visitor.visit_i64(value),
                _ => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Data::Text(text) => visitor.visit_borrowed_str(text),
            Data::List(items) => visitor.visit_seq(Items::new(self, items)),
            Data::Table(entries) => visitor.visit_map(Entries::new(self, entries.iter().collect())),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == SETTING {
            visitor.visit_seq(Parts::new(self))
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Data::Table(entries) = &self.node.data else {
            let few = &fields[..fields.len().min(4)];
            let expected = format!("a table with keys such as `{}`", few.join("`, `"));
            return Err(self.mismatch(&expected.as_str(), None));
        };
        visitor.visit_map(self.known_entries(entries, fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (variant, otherwise) = if name == BY_KIND {
            (self.node.kind_word(), self.mismatch(&visitor, None))
        } else if let Data::Text(word) = &self.node.data {
            (word.as_str(), Fault::word(word, variants))
        } else {
            let expected = format!("one of `{}`", variants.join("`, `"));
            return Err(self.mismatch(&expected.as_str(), None));
        };
        if variants.contains(&variant) {
            visitor.visit_enum(Variant(self, variant))
        } else {
            Err(otherwise)
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.data {
            Data::Bool(value) => visitor.visit_bool(*value),
            Data::Text(word) if YES_AND_NO.contains(&word.to_lowercase().as_str()) => Err(self
                .mismatch(
                    &BOOLEAN,
                    Some("YAML 1.2 knows no other words for them".to_owned()),
                )),
            _ => Err(self.mismatch(&BOOLEAN, None)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.data {
            Data::Text(text) => visitor.visit_borrowed_str(text),
            Data::Bool(_) | Data::Number(_) => {
                Err(self.mismatch(&"text", Some("quotes make it text".to_owned())))
            }
            Data::Table(_) => Err(self.mismatch(
                &"text",
                Some("`{name}` without quotes is a table of YAML; with them it is text".to_owned()),
            )),
            _ => Err(self.mismatch(&"text", None)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.data {
            Data::List(_) => self.deserialize_any(visitor),
            Data::Text(one) if !one.contains(char::is_whitespace) => {
                let hint = format!("a list of one is `[{one}]`");
                Err(self.mismatch(&"a list such as `[a, b]`", Some(hint)))
            }
            _ => Err(self.mismatch(&"a list such as `[a, b]`", None)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.data {
            Data::Table(_) => self.deserialize_any(visitor),
            Data::List(items) => {
                let named = items.iter().flat_map(|item| item.texts("name")).next();
                let hint = named.map(|(name, _)| {
                    format!("the name is the key: write `{name}:` for `- name: {name}`, and the rest below it")
                });
                Err(self.mismatch(&"a table such as `{name: value}`", hint))
            }
            _ => Err(self.mismatch(&"a table such as `{name: value}`", None)),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf option unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}
