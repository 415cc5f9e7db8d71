//! JSON opened one level at a time: what is inside stays the text that it is.
//!
//! A text is validated once, while its outermost object is read. What is opened inside it then is known to be JSON, and
//! looking for the ends of values costs little more than finding quotes. Of a text that nobody validated the parts are
//! unspecified, but nothing panics.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::cursor::Cursor;
use crate::json::opened::Opened;

/// The text of one value.
#[derive(Debug, Clone, Copy)]
pub struct Json<'a> {
    text: &'a str,
    /// The same, where the parser met it by itself.
    raw: Option<&'a RawValue>,
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Self {
        let text = raw.get();
        let raw = Some(raw);
        Self { text, raw }
    }
}

impl<'a> Json<'a> {
    /// `text` is valid JSON without white space around it.
    pub fn new(text: &'a str) -> Self {
        Self { text, raw: None }
    }

    /// The JSON text.
    pub fn get(self) -> &'a str {
        self.text
    }

    /// The value, where a parser read it by itself.
    pub fn raw(self) -> Option<&'a RawValue> {
        self.raw
    }

    /// What it is, in words.
    pub fn kind(self) -> &'static str {
        match self.text.as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    /// The text of a string; none where it is none or holds a lone surrogate.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str(self.text).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// The elements of an array; none where it is none.
    pub fn list(self) -> Option<Vec<Json<'a>>> {
        let mut cursor = Cursor::new(self.text);
        let mut items = Vec::new();
        if !cursor.eat(b'[') {
            return None;
        }
        while !cursor.eat(b']') {
            items.push(cursor.value()?);
            cursor.eat(b',');
        }
        Some(items)
    }

    /// The elements of an array of objects, each opened when its turn comes; none where it is no array.
    pub fn objects(self) -> Option<Objects<'a>> {
        let mut cursor = Cursor::new(self.text);
        cursor.eat(b'[').then_some(Objects(cursor))
    }

    /// The members of an object; none where it is none, or has a key that is no text (a lone surrogate).
    pub fn object(self) -> Option<Object<'a>> {
        Cursor::new(self.text).object()
    }
}

/// The elements of an array: objects, or what stands in the place of one.
#[derive(Debug)]
pub struct Objects<'a>(Cursor<'a>);

impl<'a> Iterator for Objects<'a> {
    type Item = Result<Object<'a>, Json<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.eat(b']') {
            return None;
        }
        let item = match self.0.object() {
            Some(object) => Ok(object),
            None => Err(self.0.value()?),
        };
        self.0.eat(b',');
        Some(item)
    }
}

/// A key and its value.
pub(crate) type Member<'a> = (Cow<'a, str>, Json<'a>);

/// An object's members in their order, those that stand twice included.
#[derive(Debug)]
pub struct Object<'a> {
    pub(crate) json: Json<'a>,
    pub(crate) members: Vec<Member<'a>>,
}

impl<'a> Object<'a> {
    /// Validates `text`; none where it is no object.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn read(text: &'a str) -> serde_json::Result<Option<Self>> {
        let opened: Opened = serde_json::from_str(text)?;
        Ok(opened.object(text))
    }

    /// The whole object.
    pub fn json(&self) -> Json<'a> {
        self.json
    }

    /// The members in their order.
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }

    /// The value of `key`, the last where it stands twice; none where it is missing.
    pub fn get(&self, key: &str) -> Option<Json<'a>> {
        let mut backwards = self.members.iter().rev();
        backwards.find_map(|(name, value)| (name == key).then_some(*value))
    }

    /// The value of a key on which the reading of the object depends: readers differ in which of two counts.
    ///
    /// # Errors
    /// The key is there twice.
    pub fn once(&self, key: &str) -> Result<Option<Json<'a>>, Twice<'a>> {
        let mut values = self.members.iter().filter(|(name, _)| name == key);
        let first = values.next().map(|(_, value)| *value);
        match values.next() {
            None => Ok(first),
            Some((key, second)) => Err(Twice {
                key: key.clone(),
                second: *second,
            }),
        }
    }

    /// The string at a key that must not be there twice; `None` if it is missing or not a string.
    ///
    /// # Errors
    /// The key is there twice.
    pub fn text_once(&self, key: &str) -> Result<Option<Cow<'a, str>>, Twice<'a>> {
        Ok(self.once(key)?.and_then(Json::text))
    }

    /// The string at `key`; none where it is missing or something else.
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(Json::text)
    }

    /// The elements at `key`; none where it is missing or something else.
    pub fn list(&self, key: &str) -> Option<Vec<Json<'a>>> {
        self.get(key).and_then(Json::list)
    }

    /// The members at `key`; none where it is missing or something else.
    pub fn object(&self, key: &str) -> Option<Object<'a>> {
        self.get(key).and_then(Json::object)
    }

    /// Whether `key` is there and not null.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !value.is_null())
    }

    /// A key that stands twice.
    pub fn twice(&self) -> Option<&str> {
        twice(self.members.iter().map(|(key, _)| &**key).collect())
    }
}

/// A key stands twice in one object.
#[derive(Debug)]
pub struct Twice<'a> {
    pub key: Cow<'a, str>,
    /// Its second value.
    pub second: Json<'a>,
}

/// A key that stands twice among `keys`.
pub(crate) fn twice(mut keys: Vec<&str>) -> Option<&str> {
    keys.sort_unstable();
    keys.windows(2)
        .find_map(|pair| (pair[0] == pair[1]).then_some(pair[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_text_that_they_were() {
        let text = r#"{ "a" : [1.50, "x\"]}", {"b":[]} ,null] , "\u0061":-0,"":"" }"#;
        let object = Json::new(text).object().unwrap();
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
        assert_eq!(object.twice(), Some("a"));
        let list = object.members()[0].1.list().unwrap();
        assert_eq!(list.len(), 4);
        assert_eq!(list[1].text().unwrap(), "x\"]}");
        assert!(Json::new("[]").list().unwrap().is_empty());
        assert!(Json::new("{}").object().unwrap().members().is_empty());
    }

    /// FAULTS 2, 11: also of a text that is no JSON nothing worse comes than none.
    #[test]
    fn broken_text_is_survived() {
        let text = r#"{"ä":["\"é",{"\ud800":1}],"b":"\\"}"#;
        for (cut, _) in text.char_indices() {
            let _ = Json::new(&text[..cut]).object();
            let _ = Json::new(&text[cut..]).list();
            let _ = Json::new(&text[cut..]).text();
        }
        for text in [
            "{,}", "{]", "[}", "[1 2", "[:]", "{\"a\"", "{\"a\":}", "\"", "[\"\\", "{1é}",
        ] {
            let _ = (Json::new(text).object(), Json::new(text).list());
        }
    }
}
