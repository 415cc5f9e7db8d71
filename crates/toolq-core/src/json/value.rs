//! JSON that is parsed one level at a time. Nested values remain text until they are needed.
//!
//! A text is validated once, while its outermost object is parsed. Values inside it are then known to be valid JSON, so
//! finding where they end costs little more than finding quotes. For a text that nothing validated, the parts are
//! unspecified, but nothing panics.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::cursor::JsonCursor;
use crate::json::kind::JsonKind;
use crate::json::shallow::ShallowJson;

/// With at most this many keys, comparing every pair is faster than sorting.
const FEW_KEYS: usize = 8;

/// The text of one JSON value.
#[derive(Debug, Clone, Copy)]
pub struct JsonText<'a> {
    source: &'a str,
    /// The same value, if the parser provided it as a raw value.
    raw: Option<&'a RawValue>,
}

impl<'a> From<&'a RawValue> for JsonText<'a> {
    fn from(raw: &'a RawValue) -> Self {
        let text = raw.get();
        let raw = Some(raw);
        Self { source: text, raw }
    }
}

impl<'a> JsonText<'a> {
    /// Wraps `source`, which must be valid JSON without surrounding whitespace.
    pub fn new(source: &'a str) -> Self {
        Self { source, raw: None }
    }

    /// Returns the JSON text.
    pub fn get(self) -> &'a str {
        self.source
    }

    /// Returns the raw value, if the parser provided one.
    pub fn raw(self) -> Option<&'a RawValue> {
        self.raw
    }

    /// Returns the kind of value.
    pub fn kind(self) -> JsonKind {
        match self.source.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Boolean,
            Some(b'n') => JsonKind::Null,
            _ => JsonKind::Number,
        }
    }

    /// Whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.source == "null"
    }

    /// Returns the text of a string, or `None` if the value isn't a string or contains a lone surrogate.
    pub fn to_text(self) -> Option<Cow<'a, str>> {
        let inner = self.source.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str(self.source).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// Returns the elements of an array, or `None` if the value isn't an array.
    pub fn elements(self) -> Option<Vec<JsonText<'a>>> {
        let mut cursor = JsonCursor::new(self.source);
        let mut items = Vec::new();
        if !cursor.eat(b'[') {
            return None;
        }
        while !cursor.eat(b']') {
            items.push(cursor.read_value()?);
            cursor.eat(b',');
        }
        Some(items)
    }

    /// Returns an iterator over an array of objects that parses each when it is reached, or `None` if the value isn't
    /// an array.
    pub fn objects(self) -> Option<ObjectIter<'a>> {
        let mut cursor = JsonCursor::new(self.source);
        cursor.eat(b'[').then_some(ObjectIter(cursor))
    }

    /// Returns the members of an object, or `None` if the value isn't an object or a key contains a lone surrogate.
    pub fn object(self) -> Option<ParsedObject<'a>> {
        JsonCursor::new(self.source).read_object()
    }
}

/// Iterates over the elements of an array: parsed objects, or the text of elements that aren't objects.
#[derive(Debug)]
pub struct ObjectIter<'a>(JsonCursor<'a>);

impl<'a> Iterator for ObjectIter<'a> {
    type Item = Result<ParsedObject<'a>, JsonText<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.eat(b']') {
            return None;
        }
        let item = match self.0.read_object() {
            Some(object) => Ok(object),
            None => Err(self.0.read_value()?),
        };
        self.0.eat(b',');
        Some(item)
    }
}

/// A key and its value.
pub(crate) type JsonMember<'a> = (Cow<'a, str>, JsonText<'a>);

/// The members of an object in order, including those with duplicate keys.
#[derive(Debug)]
pub struct ParsedObject<'a> {
    pub(crate) json: JsonText<'a>,
    pub(crate) members: Vec<JsonMember<'a>>,
}

impl<'a> ParsedObject<'a> {
    /// Validates and parses `text`. Returns `None` if it isn't an object.
    ///
    /// # Errors
    /// `text` isn't valid JSON.
    pub fn parse(text: &'a str) -> serde_json::Result<Option<Self>> {
        let opened: ShallowJson = serde_json::from_str(text)?;
        Ok(opened.into_object(text))
    }

    /// Returns the whole object.
    pub fn json(&self) -> JsonText<'a> {
        self.json
    }

    /// Returns the members in order.
    pub fn members(&self) -> &[JsonMember<'a>] {
        &self.members
    }

    /// Returns the value of `key`, or `None` if it is missing. Of duplicate keys, the last counts.
    pub fn get(&self, key: &str) -> Option<JsonText<'a>> {
        let mut backwards = self.members.iter().rev();
        backwards.find_map(|(name, value)| (name == key).then_some(*value))
    }

    /// Returns the value of a key that must not be ambiguous: parsers disagree on which of two duplicates counts.
    ///
    /// # Errors
    /// The key is duplicated.
    pub fn get_unique(&self, key: &str) -> Result<Option<JsonText<'a>>, DuplicateKey<'a>> {
        let mut values = self.members.iter().filter(|(name, _)| name == key);
        let first = values.next().map(|(_, value)| *value);
        match values.next() {
            None => Ok(first),
            Some((key, second)) => Err(DuplicateKey {
                key: key.clone(),
                second_value: *second,
            }),
        }
    }

    /// Returns the string at a key that must not be duplicated, or `None` if it is missing or not a string.
    ///
    /// # Errors
    /// The key is duplicated.
    pub fn get_unique_text(&self, key: &str) -> Result<Option<Cow<'a, str>>, DuplicateKey<'a>> {
        Ok(self.get_unique(key)?.and_then(JsonText::to_text))
    }

    /// Returns the string at `key`, or `None` if it is missing or not a string.
    pub fn get_text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(JsonText::to_text)
    }

    /// Returns the elements at `key`, or `None` if it is missing or not an array.
    pub fn get_elements(&self, key: &str) -> Option<Vec<JsonText<'a>>> {
        self.get(key).and_then(JsonText::elements)
    }

    /// Returns the members at `key`, or `None` if it is missing or not an object.
    pub fn get_object(&self, key: &str) -> Option<ParsedObject<'a>> {
        self.get(key).and_then(JsonText::object)
    }

    /// Whether `key` is present and not null.
    pub fn has_value(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !value.is_null())
    }

    /// Returns a duplicate key, if there is one.
    pub fn duplicate_key(&self) -> Option<&str> {
        find_duplicate(self.members.iter().map(|(key, _)| &**key))
    }
}

/// A duplicate key in one object.
#[derive(Debug)]
pub struct DuplicateKey<'a> {
    pub key: Cow<'a, str>,
    /// The value of its second occurrence.
    pub second_value: JsonText<'a>,
}

/// Returns a key that occurs more than once in `keys`.
pub(crate) fn find_duplicate<'k>(
    keys: impl ExactSizeIterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    if keys.len() <= FEW_KEYS {
        return keys.clone().enumerate().find_map(|(index, key)| {
            let mut others = keys.clone().skip(index + 1);
            others.any(|other| other == key).then_some(key)
        });
    }
    let mut keys: Vec<&str> = keys.collect();
    keys.sort_unstable();
    keys.windows(2)
        .find_map(|pair| (pair[0] == pair[1]).then_some(pair[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_keep_their_text() {
        let text = r#"{ "a" : [1.50, "x\"]}", {"b":[]} ,null] , "\u0061":-0,"":"" }"#;
        let object = JsonText::new(text).object().unwrap();
        let members: Vec<(&str, &str)> = object
            .members()
            .iter()
            .map(|(key, value)| (&**key, value.get()))
            .collect();
        assert_eq!(
            members,
            [
                ("a", r#"[1.50, "x\"]}", {"b":[]} ,null]"#),
                ("a", "-0"),
                ("", "\"\"")
            ]
        );
        assert_eq!(object.duplicate_key(), Some("a"));
        let list = object.members()[0].1.elements().unwrap();
        assert_eq!(list.len(), 4);
        assert_eq!(list[1].to_text().unwrap(), "x\"]}");
        assert!(JsonText::new("[]").elements().unwrap().is_empty());
        assert!(JsonText::new("{}").object().unwrap().members().is_empty());
    }

    /// Text that isn't valid JSON may yield nothing, but must not panic.
    #[test]
    fn broken_text_never_panics() {
        let text = r#"{"ä":["\"é",{"\ud800":1}],"b":"\\"}"#;
        for (cut, _) in text.char_indices() {
            let _ = JsonText::new(&text[..cut]).object();
            let _ = JsonText::new(&text[cut..]).elements();
            let _ = JsonText::new(&text[cut..]).to_text();
        }
        for text in [
            "{,}", "{]", "[}", "[1 2", "[:]", "{\"a\"", "{\"a\":}", "\"", "[\"\\", "{1é}",
        ] {
            let _ = (JsonText::new(text).object(), JsonText::new(text).elements());
        }
    }
}
