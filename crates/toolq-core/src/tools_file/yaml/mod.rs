//! Parses YAML text into a tree of nodes with their positions, or reports every syntax problem.

pub(crate) mod parse;

use serde_json::{Map, Number, Value};

use crate::json::pointer_tokens;
use crate::types::Span;

/// A YAML node and its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    /// The whole scalar, or the first character of a list or table. For an alias, the span of the anchored value, since
    /// that is where a mistake has to be fixed.
    pub span: Span,
    /// The value.
    pub content: YamlContent,
}

/// The content of a node: JSON's kinds, which are all that tools.yaml needs.
#[derive(Debug, Clone, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names are JSON's kinds")]
pub enum YamlContent {
    Null,
    #[strum(to_string = "boolean")]
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<YamlNode>),
    Table(Vec<YamlEntry>),
}

/// A key of a table and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlEntry {
    /// Unique within its table.
    pub key: String,
    /// The span of the key.
    pub key_span: Span,
    /// The value.
    pub value: YamlNode,
}

impl YamlNode {
    /// Converts the node to JSON, dropping the spans.
    pub fn to_json(&self) -> Value {
        match &self.content {
            YamlContent::Null => Value::Null,
            YamlContent::Bool(bool) => Value::Bool(*bool),
            YamlContent::Number(number) => Value::Number(number.clone()),
            YamlContent::Text(text) => Value::String(text.clone()),
            YamlContent::List(items) => items.iter().map(Self::to_json).collect(),
            YamlContent::Table(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Moves all spans by `offset` bytes, for a text that begins there.
    pub(crate) fn shift_spans(&mut self, offset: usize) {
        self.span.start += offset;
        match &mut self.content {
            YamlContent::List(items) => items.iter_mut().for_each(|item| item.shift_spans(offset)),
            YamlContent::Table(entries) => {
                for entry in entries {
                    entry.key_span.start += offset;
                    entry.value.shift_spans(offset);
                }
            }
            _ => {}
        }
    }

    /// Appends the lists and tables that `other` has under `keys` to those of this node, so that lookups find them. The
    /// first of two equal keys stays.
    pub(crate) fn append_entries(&mut self, other: Self, keys: &[&str]) {
        let YamlContent::Table(more) = other.content else {
            return;
        };
        let YamlContent::Table(own) = &mut self.content else {
            return;
        };
        for entry in more {
            if !keys.contains(&&*entry.key) {
                continue;
            }
            let known = own.iter_mut().find(|known| known.key == entry.key);
            match (
                known.map(|known| &mut known.value.content),
                entry.value.content,
            ) {
                (Some(YamlContent::List(known)), YamlContent::List(items)) => known.extend(items),
                (Some(YamlContent::Table(known)), YamlContent::Table(entries)) => {
                    known.extend(entries);
                }
                (Some(_), _) => {}
                (None, content) => own.push(YamlEntry {
                    value: Self {
                        content,
                        ..entry.value
                    },
                    ..entry
                }),
            }
        }
    }

    /// Returns the texts at the node that `keys` lead to, with their spans: a single text, or those of a list.
    pub fn texts_at<'n>(&'n self, keys: &[&str]) -> Vec<(&'n str, Span)> {
        let mut child = self;
        for key in keys {
            match child.child(key) {
                Some((_, next)) => child = next,
                None => return Vec::new(),
            }
        }
        let all = match &child.content {
            YamlContent::List(items) => items.as_slice(),
            _ => std::slice::from_ref(child),
        };
        all.iter()
            .filter_map(|node| match &node.content {
                YamlContent::Text(text) => Some((text.as_str(), node.span)),
                _ => None,
            })
            .collect()
    }

    /// Returns the kind of the node for use in messages, such as "text" or "a list".
    pub fn kind_phrase(&self) -> &'static str {
        match &self.content {
            YamlContent::Null => "null",
            YamlContent::Bool(true) => "the boolean true",
            YamlContent::Bool(false) => "the boolean false",
            YamlContent::Number(_) => "a number",
            YamlContent::Text(_) => "text",
            YamlContent::List(_) => "a list",
            YamlContent::Table(_) => "a table",
        }
    }

    /// Returns the kind as one word: `null`, `boolean`, `number`, `text`, `list` or `table`.
    pub fn kind_name(&self) -> &'static str {
        (&self.content).into()
    }

    /// Returns the span to report for the node at `keys` followed by the JSON pointer `pointer` (RFC 6901), or for its
    /// nearest existing ancestor.
    ///
    /// That is the node itself for a scalar and its key for null, a list or a table, since a label under many lines
    /// isn't helpful.
    pub fn span_at(&self, keys: &[&str], pointer: &str) -> Span {
        let (key, node) = self.descend(keys, pointer);
        match node.content {
            YamlContent::Null | YamlContent::List(_) | YamlContent::Table(_) => key,
            _ => node.span,
        }
    }

    /// Returns the span of the key of the node that [`Self::span_at`] finds, regardless of its value. An element of a
    /// list is its own key.
    pub fn key_span_at(&self, keys: &[&str], pointer: &str) -> Span {
        self.descend(keys, pointer).0
    }

    /// Returns the keys that lead to the last node that begins at or before `offset`. The nodes must be in the order of the text.
    pub(crate) fn path_at(&self, offset: usize) -> Vec<String> {
        let mut keys = Vec::new();
        let mut node = self;
        loop {
            let (key, child) = match &node.content {
                YamlContent::Table(entries) => {
                    let after = entries.partition_point(|entry| entry.key_span.start <= offset);
                    let Some(entry) = after.checked_sub(1).map(|index| &entries[index]) else {
                        return keys;
                    };
                    (entry.key.clone(), &entry.value)
                }
                YamlContent::List(items) => {
                    let after = items.partition_point(|item| item.span.start <= offset);
                    let Some(index) = after.checked_sub(1) else {
                        return keys;
                    };
                    (index.to_string(), &items[index])
                }
                _ => return keys,
            };
            keys.push(key);
            node = child;
        }
    }

    /// Returns the last existing node on the path, with the span of its key.
    fn descend(&self, keys: &[&str], pointer: &str) -> (Span, &Self) {
        let tokens = pointer_tokens(pointer);
        let mut found = (self.span, self);
        for token in keys.iter().map(|key| (*key).to_owned()).chain(tokens) {
            match found.1.child(&token) {
                Some(child) => found = child,
                None => break,
            }
        }
        found
    }

    /// Returns the child at a key or index, with the span of its key. An element of a list is its own key.
    fn child(&self, token: &str) -> Option<(Span, &Self)> {
        match &self.content {
            YamlContent::Table(entries) => {
                let entry = entries.iter().find(|entry| entry.key == token)?;
                Some((entry.key_span, &entry.value))
            }
            YamlContent::List(items) => {
                let item = items.get(token.parse::<usize>().ok()?)?;
                Some((item.span, item))
            }
            _ => None,
        }
    }
}
