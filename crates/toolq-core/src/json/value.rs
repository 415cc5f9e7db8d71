//! JSON that is parsed one level at a time. Nested values remain text until they are needed.
//!
//! A text is validated once, while its outermost object is parsed. Values inside it are then known to be valid JSON, so
//! finding where they end costs little more than finding quotes. For a text that nothing validated, the parts are
//! unspecified, but nothing panics.

use std::borrow::Cow;

use memchr::memchr2;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// With at most this many keys, comparing every pair is faster than sorting.
const FEW_KEYS: usize = 8;

/// The text of one JSON value.
#[derive(Debug, Clone, Copy)]
pub struct JsonText<'a>(&'a str);

impl<'a> From<&'a RawValue> for JsonText<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }
}

impl<'a> JsonText<'a> {
    /// Wraps `source`, which must be valid JSON without surrounding whitespace.
    pub fn new(source: &'a str) -> Self {
        Self(source)
    }

    /// Returns the JSON text.
    pub fn get(self) -> &'a str {
        self.0
    }

    /// Returns the kind of value.
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
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
        self.0 == "null"
    }

    /// Returns the text of a string, or `None` if the value isn't a string or contains a lone surrogate.
    pub fn to_text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str(self.0).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// Returns the elements of an array, or `None` if the value isn't an array.
    pub fn elements(self) -> Option<Vec<JsonText<'a>>> {
        let mut cursor = JsonCursor::new(self.0);
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
        let mut cursor = JsonCursor::new(self.0);
        cursor.eat(b'[').then_some(ObjectIter(cursor))
    }

    /// Returns the members of an object, or `None` if the value isn't an object or a key contains a lone surrogate.
    pub fn object(self) -> Option<ParsedObject<'a>> {
        JsonCursor::new(self.0).read_object()
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
type JsonMember<'a> = (Cow<'a, str>, JsonText<'a>);

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
        serde_json::from_str::<IgnoredAny>(text)?;
        Self::open(JsonText::new(text))
    }

    /// Parses valid JSON. Returns `None` if it isn't an object.
    ///
    /// # Errors
    /// A key is no text.
    pub(crate) fn open(json: JsonText<'a>) -> serde_json::Result<Option<Self>> {
        let object = json.object();
        if object.is_none() && json.kind() == JsonKind::Object {
            return Err(serde_json::Error::custom(
                "a key has half of a surrogate pair",
            ));
        }
        Ok(object)
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

// Steps through valid JSON from value to value. Invalid JSON ends the walk, but never panics.

/// A position in valid JSON.
#[derive(Debug)]
pub(crate) struct JsonCursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> JsonCursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Skips whitespace and returns the next byte.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.position)?, b' ' | b'\t' | b'\r' | b'\n') {
            self.position += 1;
        }
        bytes.get(self.position).copied()
    }

    /// Consumes `byte` if it is next.
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    /// Consumes the next value and parses its members, if it is an object.
    pub fn read_object(&mut self) -> Option<ParsedObject<'a>> {
        self.peek();
        let start = self.position;
        let members = self.read_members();
        let json = self.text.get(start..self.position).map(JsonText::new);
        if let (Some(members), Some(json)) = (members, json) {
            return Some(ParsedObject { json, members });
        }
        self.position = start;
        None
    }

    fn read_members(&mut self) -> Option<Vec<JsonMember<'a>>> {
        let mut members = Vec::with_capacity(8);
        if !self.eat(b'{') {
            return None;
        }
        while !self.eat(b'}') {
            let key = self.read_value()?.to_text()?;
            self.eat(b':');
            members.push((key, self.read_value()?));
            self.eat(b',');
        }
        Some(members)
    }

    /// Consumes the next value.
    pub fn read_value(&mut self) -> Option<JsonText<'a>> {
        self.peek()?;
        let end = find_value_end(self.text.as_bytes(), self.position)?;
        let value = self.text.get(self.position..end)?;
        self.position = end;
        Some(JsonText::new(value))
    }
}

/// Returns the end of the value that begins at `at`.
fn find_value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => find_string_end(bytes, at + 1),
        b'{' | b'[' => find_nested_end(bytes, at),
        b',' | b':' | b'}' | b']' => None,
        _ => {
            let ends =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            let len = bytes[at..].iter().position(ends);
            Some(len.map_or(bytes.len(), |len| at + len))
        }
    }
}

/// Returns the end of the string whose opening quote is just before `at`.
pub(crate) fn find_string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)? + 1;
        if bytes[at - 1] == b'"' {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns the end of the array or object that begins at `at`.
fn find_nested_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'"' => at = find_string_end(bytes, at)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(at),
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
}

// The kinds of JSON values.

/// The kind of a JSON value. Displayed as a phrase for messages: "an object".
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, Serialize, Deserialize)]
#[expect(missing_docs, reason = "JSON has these kinds")]
pub enum JsonKind {
    #[strum(to_string = "an object")]
    Object,
    #[strum(to_string = "an array")]
    Array,
    #[strum(to_string = "a string")]
    String,
    #[strum(to_string = "a number")]
    Number,
    #[strum(to_string = "a boolean")]
    Boolean,
    #[strum(to_string = "null")]
    Null,
}

// The names in a JSON pointer (RFC 6901).

/// Escapes a name for use in a JSON pointer.
pub fn escape_pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the name that a token of a JSON pointer encodes.
pub fn unescape_pointer_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Formats a path of keys and indices as a JSON pointer.
pub fn json_pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |pointer, part| {
        pointer + "/" + &escape_pointer_token(part)
    })
}

/// Returns the names on the path of a JSON pointer.
pub fn pointer_tokens(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(unescape_pointer_token)
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

#[cfg(test)]
mod pointer_tests {
    use super::*;

    #[test]
    fn every_name_survives_in_a_pointer() {
        let path = ["", "a/b", "~", "~1", "~0~/", "ä"].map(str::to_owned);
        let pointer = json_pointer(&path);
        assert_eq!(pointer, "//a~1b/~0/~01/~00~0~1/ä");
        assert_eq!(pointer_tokens(&pointer).collect::<Vec<_>>(), path);
        assert_eq!(pointer_tokens("").count(), 0);
    }
}
