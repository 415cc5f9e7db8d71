use serde_json::{Map, Number, Value};

use crate::types::Span;

/// A YAML node and where it stands in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The whole node. Behind an alias it is the place of the anchor: what is wrong is wrong there.
    pub span: Span,
    /// What it holds.
    pub data: Data,
}

/// What a node holds: JSON's kinds, since that is all that tools.yaml needs.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are JSON's kinds")]
pub enum Data {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Unique within its table.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// What stands behind it.
    pub value: Node,
}

impl Node {
    /// The same as JSON, without places.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(bool) => Value::Bool(*bool),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => items.iter().map(Self::to_value).collect(),
            Data::Table(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// The texts behind `key`, each with its place: one, or those of a list.
    pub fn texts<'n>(&'n self, key: &str) -> Vec<(&'n str, Span)> {
        let Some((_, child)) = self.child(key) else {
            return Vec::new();
        };
        let all = match &child.data {
            Data::List(items) => items.as_slice(),
            _ => std::slice::from_ref(child),
        };
        let texts = all.iter().filter_map(|node| match &node.data {
            Data::Text(text) => Some((text.as_str(), node.span)),
            _ => None,
        });
        texts.collect()
    }

    /// What a person calls it: "text", "a list".
    pub fn kind(&self) -> &'static str {
        match &self.data {
            Data::Null => "nothing",
            Data::Bool(true) => "the boolean true",
            Data::Bool(false) => "the boolean false",
            Data::Number(_) => "a number",
            Data::Text(_) => "text",
            Data::List(_) => "a list",
            Data::Table(_) => "a table",
        }
    }

    /// One word for the same: `null`, `boolean`, `number`, `text`, `list` or `table`.
    pub fn kind_word(&self) -> &'static str {
        match &self.data {
            Data::Null => "null",
            Data::Bool(_) => "boolean",
            Data::Number(_) => "number",
            Data::Text(_) => "text",
            Data::List(_) => "list",
            Data::Table(_) => "table",
        }
    }

    /// The place that `keys`, and a JSON pointer (RFC 6901) behind them, lead to, as near as the tree comes to it. A
    /// scalar is its own place; a list or table is named by the key before it, since a label under many lines helps
    /// nobody.
    pub fn place(&self, keys: &[&str], pointer: &str) -> Span {
        let (key, node) = self.descend(keys, pointer);
        match node.data {
            Data::Null | Data::List(_) | Data::Table(_) => key,
            _ => node.span,
        }
    }

    /// The key that [`Self::place`] comes to, whatever stands behind it; an element of a list is its own.
    pub fn key_place(&self, keys: &[&str], pointer: &str) -> Span {
        self.descend(keys, pointer).0
    }

    /// The last node on the way that there is, and what stands for it in a label.
    fn descend(&self, keys: &[&str], pointer: &str) -> (Span, &Self) {
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
        let tokens = pointer.split('/').skip(1).map(unescaped);
        let mut found = (self.span, self);
        for token in keys.iter().map(|key| (*key).to_owned()).chain(tokens) {
            match found.1.child(&token) {
                Some(child) => found = child,
                None => break,
            }
        }
        found
    }

    /// The child that a key or an index names, and what stands for it in a label.
    fn child(&self, token: &str) -> Option<(Span, &Self)> {
        match &self.data {
            Data::Table(entries) => {
                let entry = entries.iter().find(|entry| entry.key == token)?;
                Some((entry.key_span, &entry.value))
            }
            Data::List(items) => {
                let item = items.get(token.parse::<usize>().ok()?)?;
                Some((item.span, item))
            }
            _ => None,
        }
    }
}
