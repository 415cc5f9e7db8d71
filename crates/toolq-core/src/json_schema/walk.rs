//! A schema → every place in it where a schema stands, with its pointer and base.
//!
//! Only keywords that hold schemas are entered: a `$ref` inside `const`, `default` or `examples` is data, and a property
//! may be called `pattern`.

use std::rc::Rc;

use serde_json::{Map, Value};
use url::Url;

/// Keywords that hold one schema, or an array of them.
const APPLICATORS: [&str; 18] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "extends",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "disallow",
];
/// Keywords that hold schemas by name.
const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// A place where a schema stands.
pub(crate) struct Place<'a> {
    /// JSON pointer from the document's root.
    pub(crate) pointer: String,
    /// What its references are relative to.
    pub(crate) base: Rc<Url>,
    /// The schema; those that are `true` or `false` are left out.
    pub(crate) schema: &'a Map<String, Value>,
    /// The index of the place around it.
    pub(crate) parent: Option<usize>,
}

/// All places of the document at `address`, the root first, each behind the place around it.
pub(crate) fn places<'a>(document: &'a Value, address: &str) -> Vec<Place<'a>> {
    let mut found: Vec<Place<'a>> = Vec::new();
    let Ok(base) = Url::parse(address).map(Rc::new) else {
        return found;
    };
    let mut open = vec![(String::new(), base, None, document)];
    while let Some((pointer, base, parent, value)) = open.pop() {
        let Some(schema) = value.as_object() else {
            continue;
        };
        let base = rebased(schema, base);
        for (pointer, value) in subschemas(schema, &pointer) {
            open.push((pointer, Rc::clone(&base), Some(found.len()), value));
        }
        found.push(Place {
            pointer,
            base,
            schema,
            parent,
        });
    }
    found
}

/// The schemas that stand directly in the one at `pointer`, with their own pointers.
fn subschemas<'a>(schema: &'a Map<String, Value>, pointer: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        let below = |part: &str| [pointer, "/", keyword, "/", part].concat();
        match value {
            Value::Object(named) if NAMED.contains(&keyword) => {
                let each = named.iter();
                found.extend(each.map(|(name, value)| (below(&escaped(name)), value)));
            }
            _ if !APPLICATORS.contains(&keyword) => {}
            Value::Array(items) => {
                let each = items.iter().enumerate();
                found.extend(each.map(|(index, item)| (below(&index.to_string()), item)));
            }
            one => found.push(([pointer, "/", keyword].concat(), one)),
        }
    }
    found
}

/// `$id` changes the base of everything below it.
fn rebased(schema: &Map<String, Value>, base: Rc<Url>) -> Rc<Url> {
    let id = schema.get("$id").and_then(Value::as_str);
    match id.and_then(|id| base.join(id).ok()) {
        Some(mut joined) => {
            joined.set_fragment(None);
            Rc::new(joined)
        }
        None => base,
    }
}

/// The JSON pointer of a path of keys and indices.
pub(crate) fn pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |pointer, part| {
        pointer + "/" + &escaped(part)
    })
}

/// A name as a part of a JSON pointer (RFC 6901).
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
