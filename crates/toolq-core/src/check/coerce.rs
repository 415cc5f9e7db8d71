//! An input that fails by types alone → the same input with those values as what they spell: `"true"`, `"3"`, a JSON
//! array or object inside a string. Every other byte stays. Nothing is guessed: what isn't accepted afterwards was
//! never touched.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use jsonschema::JsonType;

use crate::json::{Input, Json, Object};
use crate::json_schema::{Schema, Wanted};

/// How often: an array inside a string may hold numbers inside strings.
const ROUNDS: usize = 3;

/// The mended input and its tree, where it validates.
pub(crate) fn coerced(input: &Input, value: &Value, schema: &Schema) -> Option<(Input, Value)> {
    let mut wanted = schema.wanted(value);
    let mut mended = input.clone();
    for _ in 0..ROUNDS {
        mended = edited(&mended, &wanted)?;
        let value = mended.value();
        if schema.accepts(&value) {
            return Some((mended, value));
        }
        wanted = schema.wanted(&value);
    }
    None
}

/// The input with every wanted place that can be converted; none where there is no such place.
fn edited(input: &Input, wanted: &[Wanted]) -> Option<Input> {
    let mut tree = Places::default();
    for place in wanted {
        tree.insert(place);
    }
    let mut edits = Vec::new();
    tree.collect(Json::from(input.raw()), &mut edits);
    if edits.is_empty() {
        return None;
    }
    let text = input.text();
    let start = text.as_ptr() as usize;
    let mut mended = String::with_capacity(text.len());
    let mut done = 0;
    for Edit { at, text: new } in edits {
        mended.push_str(text.get(done..at.start - start)?);
        mended.push_str(&new);
        done = at.end - start;
    }
    mended.push_str(text.get(done..)?);
    Input::parse(&mended).ok()
}

/// A value's new text, and the addresses of its old bytes.
struct Edit {
    at: Range<usize>,
    text: String,
}

/// The wanted places as a tree of keys and indices, so that an input is walked once.
#[derive(Default)]
struct Places {
    types: Vec<JsonType>,
    below: BTreeMap<String, Places>,
}

impl Places {
    fn insert(&mut self, wanted: &Wanted) {
        let mut place = self;
        for part in wanted.pointer.split('/').skip(1) {
            let key = part.replace("~1", "/").replace("~0", "~");
            place = place.below.entry(key).or_default();
        }
        place.types.extend(&wanted.types);
    }

    /// Edits of `value`, in the order of its text.
    fn collect(&self, value: Json<'_>, edits: &mut Vec<Edit>) {
        let text = value.get();
        if let Some(new) = converted(value, &self.types) {
            let start = text.as_ptr() as usize;
            edits.push(Edit {
                at: start..start + text.len(),
                text: new,
            });
        }
        if self.below.is_empty() {
            return;
        }
        for (key, member) in value.object().iter().flat_map(Object::members) {
            if let Some(place) = self.below.get(&**key) {
                place.collect(*member, edits);
            }
        }
        for (index, item) in value.list().into_iter().flatten().enumerate() {
            if let Some(place) = self.below.get(&index.to_string()) {
                place.collect(item, edits);
            }
        }
    }
}

/// What a JSON string spells as one of `types`, as JSON.
fn converted(value: Json<'_>, types: &[JsonType]) -> Option<String> {
    let spelled = value.text()?;
    let inner = spelled.trim_matches([' ', '\t', '\r', '\n']);
    let first = inner.as_bytes().first()?;
    let wants = |kind| types.contains(&kind);
    let fits = match first {
        b't' | b'f' | b'T' | b'F' => return word(&spelled).filter(|_| wants(JsonType::Boolean)),
        b'[' => wants(JsonType::Array),
        b'{' => wants(JsonType::Object),
        b'-' | b'0'..=b'9' if inner.len() < spelled.len() => false,
        b'-' | b'0'..=b'9' if wants(JsonType::Number) => true,
        b'-' | b'0'..=b'9' => wants(JsonType::Integer) && !inner.contains(['.', 'e', 'E']),
        _ => false,
    };
    let is_json = fits && serde_json::from_str::<&RawValue>(inner).is_ok();
    is_json.then(|| inner.to_owned())
}

/// Python's words are a common slip of models.
fn word(text: &str) -> Option<String> {
    match text {
        "true" | "True" => Some("true".to_owned()),
        "false" | "False" => Some("false".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn mended(schema: &Value, text: &str) -> Option<String> {
        let schema = Schema::compile(schema, Path::new(".")).unwrap();
        let input = Input::parse(text).unwrap();
        coerced(&input, &input.value(), &schema).map(|(input, _)| input.text().to_owned())
    }

    #[test]
    fn what_a_string_spells_takes_its_place_and_nothing_else_changes() {
        let schema = json!({"properties": {
            "flag": {"type": "boolean"}, "n": {"type": "integer"}, "x": {"type": "number"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "level": {"type": "integer", "enum": [1, 2]},
            "deep": {"properties": {"a/b": {"items": {"type": "boolean"}}}}
        }});
        for (before, after) in [
            (r#"{"flag":"true"}"#, r#"{"flag":true}"#),
            (
                r#"{ "flag" : "False", "big": 12345678901234567890123 }"#,
                r#"{ "flag" : false, "big": 12345678901234567890123 }"#,
            ),
            (r#"{"n":"3", "z":-0}"#, r#"{"n":3, "z":-0}"#),
            (r#"{"x":"1.50"}"#, r#"{"x":1.50}"#),
            (r#"{"list":"[1, \"2\"]"}"#, r#"{"list":[1, 2]}"#),
            (r#"{"maybe":"7"}"#, r#"{"maybe":7}"#),
            (r#"{"level":"2"}"#, r#"{"level":2}"#),
            (
                r#"{"deep":{"a\/b":[true,"false"]},"n":"1"}"#,
                r#"{"deep":{"a\/b":[true,false]},"n":1}"#,
            ),
        ] {
            assert_eq!(mended(&schema, before).as_deref(), Some(after));
        }
    }

    #[test]
    fn nothing_is_guessed() {
        let schema = json!({"properties": {
            "flag": {"type": "boolean"}, "n": {"type": "integer"}, "s": {"type": "string"},
            "maybe": {"type": ["integer", "null"]}, "list": {"type": "array"}, "o": {"type": "object"}
        }, "additionalProperties": false});
        for text in [
            r#"{"flag":"yes"}"#,
            r#"{"flag":"1"}"#,
            r#"{"flag":1}"#,
            r#"{"n":"3.0"}"#,
            r#"{"n":" 3"}"#,
            r#"{"n":"0x3"}"#,
            r#"{"n":"03"}"#,
            r#"{"n":""}"#,
            r#"{"s":3}"#,
            r#"{"s":null}"#,
            r#"{"maybe":"null"}"#,
            r#"{"list":"a,b"}"#,
            r#"{"list":"[1"}"#,
            r#"{"o":"{\"a\":1,\"a\":2}"}"#,
            r#"{"n":"3","unknown":1}"#,
            r#"{"n":"3","flag":"maybe"}"#,
        ] {
            assert_eq!(mended(&schema, text), None, "{text}");
        }
    }
}
