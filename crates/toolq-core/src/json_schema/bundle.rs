//! A schema that refers to files → the same schema by itself, as it is told to a model: no API can follow a reference to
//! a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jsonschema::Draft;
use serde_json::{Map, Value};

use crate::json_schema::library::{BASE, Library, Reference, references};
use crate::json_schema::walk::{Place, places};

/// Keys beside a reference to a whole file, that may go before those of the file.
const NOTES: [&str; 3] = ["$comment", "description", "title"];
/// A file's own address, which nobody needs once it is a part of another.
const ADDRESSES: [&str; 2] = ["$id", "id"];
/// Keywords that give a place a name or an address of its own, which it would lose in another document.
const NAMES: [&str; 6] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "id",
];

/// `schema`, which has no [`faults`](super::faults), with the files that it reaches in `dir` among its definitions; none
/// where it reaches none. A schema that is nothing but a reference to a file is that file's.
///
/// # Errors
/// Why that can't be said in one document.
pub fn bundled(schema: &Value, dir: &Path) -> Result<Option<Value>, String> {
    let (library, _) = Library::of(schema, dir);
    if library.files.is_empty() {
        return Ok(None);
    }
    let (main, address) = main_document(schema, &library);
    let draft = Draft::default().detect(main);
    for (address, file) in &library.files {
        check(&file.value, address, draft)?;
    }
    let mut bundle = Bundle {
        library: &library,
        main: address,
        definitions: match draft {
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7 => "definitions",
            _ => "$defs",
        },
        used: definitions_of(main),
        names: BTreeMap::new(),
        open: Vec::new(),
    };
    Ok(Some(bundle.whole(main, schema)))
}

/// Whether a file says the same inside another document.
fn check(document: &Value, address: &str, draft: Draft) -> Result<(), String> {
    let name = address.trim_start_matches(BASE);
    if draft.detect(document) != draft {
        return Err(format!("`{name}` is of another draft of JSON Schema"));
    }
    let named = |place: &Place<'_>| {
        let own = |key: &&str| place.parent.is_none() && ADDRESSES.contains(key);
        let has = |key: &&str| place.schema.contains_key(*key) && !own(key);
        NAMES.into_iter().find(has)
    };
    match places(document, address).iter().find_map(named) {
        Some(key) => Err(format!("`{name}` has a `{key}` inside")),
        None => Ok(()),
    }
}

/// The document that holds the schema of the input, and its address: the file, where `schema` only refers to one.
fn main_document<'s>(schema: &'s Value, library: &'s Library) -> (&'s Value, String) {
    let mut found = (schema, BASE.to_owned());
    // References in a circle are a schema of nothing: no more steps than there are files.
    for _ in 0..library.files.len() {
        let (document, address) = &found;
        let is_bare = document.as_object().is_some_and(|keys| {
            keys.keys()
                .all(|key| ["$ref", "$schema"].contains(&&**key) || NOTES.contains(&&**key))
        });
        let places = places(document, address);
        let reference = references(&places).next().filter(|_| is_bare);
        let Some((file, fragment)) = reference.and_then(|reference| library.find(&reference))
        else {
            break;
        };
        if !fragment.is_empty() {
            break;
        }
        found = (&library.files[&file].value, file);
    }
    found
}

fn definitions_of(document: &Value) -> BTreeSet<String> {
    let each = ["$defs", "definitions"].into_iter();
    let each = each.filter_map(|key| document.get(key)?.as_object());
    each.flat_map(Map::keys).cloned().collect()
}

/// One document out of many.
struct Bundle<'l> {
    library: &'l Library,
    /// The address of the document around the others.
    main: String,
    /// The keyword of definitions.
    definitions: &'static str,
    /// Names among them that are taken.
    used: BTreeSet<String>,
    /// What the others are called among them, by address.
    names: BTreeMap<String, String>,
    /// Those that are named, but not taken in.
    open: Vec<String>,
}

impl Bundle<'_> {
    /// `main` with the notes of `schema` and all that it reaches.
    fn whole(&mut self, main: &Value, schema: &Value) -> Value {
        let mut whole = self.rewritten(main, &self.main.clone());
        let Some(object) = whole.as_object_mut() else {
            return whole;
        };
        for key in NOTES {
            if let Some(note) = schema.get(key) {
                object.insert(key.to_owned(), note.clone());
            }
        }
        let mut definitions = match object.remove(self.definitions) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        };
        while let Some(address) = self.open.pop() {
            let mut file = self.rewritten(&self.library.files[&address].value, &address);
            if let Some(object) = file.as_object_mut() {
                object.shift_remove("$schema");
            }
            definitions.insert(self.name(&address), file);
        }
        if !definitions.is_empty() {
            object.insert(self.definitions.to_owned(), definitions.into());
        }
        whole
    }

    /// `document` with references that lead to the same places of the whole.
    fn rewritten(&mut self, document: &Value, address: &str) -> Value {
        let mut rewritten = document.clone();
        for reference in references(&places(document, address)) {
            let to = self.reference(&reference, address);
            if let Some(place) = rewritten.pointer_mut(&reference.place.pointer) {
                place[reference.keyword] = to.into();
            }
        }
        if let Some(object) = rewritten.as_object_mut().filter(|_| address != BASE) {
            object.retain(|key, _| !ADDRESSES.contains(&&**key));
        }
        rewritten
    }

    /// A reference in the document at `from`, as it is said in the whole.
    fn reference(&mut self, reference: &Reference<'_, '_>, from: &str) -> String {
        let fragment = reference
            .text
            .split_once('#')
            .map_or("", |(_, behind)| behind);
        let to = self.library.find(reference).map(|(to, _)| to);
        let to = to.unwrap_or_else(|| from.to_owned());
        if to == self.main {
            return format!("#{fragment}");
        }
        let name = self.name(&to);
        format!("#/{}/{name}{fragment}", self.definitions)
    }

    /// What the file at `address` is called among the definitions: like the file.
    fn name(&mut self, address: &str) -> String {
        if let Some(name) = self.names.get(address) {
            return name.clone();
        }
        let file = address.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default();
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let stem: String = stem.chars().map(plain).collect();
        let numbered = (2_u32..).map(|number| format!("{stem}_{number}"));
        let free = |name: &String| !self.used.contains(name);
        let name = std::iter::once(stem.clone()).chain(numbered).find(free);
        let name = name.unwrap_or_default();
        self.used.insert(name.clone());
        self.names.insert(address.to_owned(), name.clone());
        self.open.push(address.to_owned());
        name
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    use crate::json_schema::faults::schema_faults;
    use crate::json_schema::schema::Schema;

    /// FAULTS 26: what a model is told needs no file.
    #[test]
    fn files_become_a_part_of_the_schema() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, value: Value| {
            fs::write(dir.path().join(name), value.to_string()).unwrap();
        };
        let text = json!({"$id": "text.json", "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string"});
        write("text.json", text);
        write(
            "node.json",
            json!({"properties": {"next": {"$ref": "#"}, "text": {"$ref": "text.json"}}, "$defs": {"n": {"type": "integer"}}}),
        );
        write(
            "sch.json",
            json!({"type": "object", "properties": {"a": {"$ref": "text.json"}}, "required": ["a"]}),
        );
        write(
            "old.json",
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}),
        );
        write("named.json", json!({"items": {"$anchor": "x"}}));
        let told = |schema: Value| {
            assert_eq!(schema_faults(&schema, dir.path()), []);
            let bundled = bundled(&schema, dir.path());
            if let Ok(Some(whole)) = &bundled {
                Schema::compile(whole, Path::new("/nowhere")).unwrap();
            }
            bundled
        };
        assert_eq!(
            told(json!({"$ref": "#/$defs/a", "$defs": {"a": {}}})),
            Ok(None)
        );
        assert_eq!(
            told(json!({"title": "T", "$ref": "./sch.json"}))
                .unwrap()
                .unwrap(),
            json!({
                "title": "T",
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/text"}},
                "required": ["a"],
                "$defs": {"text": {"type": "string"}},
            })
        );
        assert_eq!(
            told(json!({
                "properties": {"n": {"$ref": "node.json"}, "i": {"$ref": "node.json#/$defs/n"}, "s": {"$ref": "#/$defs/node"}},
                "$defs": {"node": {}},
            }))
            .unwrap()
            .unwrap(),
            json!({
                "properties": {
                    "n": {"$ref": "#/$defs/node_2"},
                    "i": {"$ref": "#/$defs/node_2/$defs/n"},
                    "s": {"$ref": "#/$defs/node"},
                },
                "$defs": {
                    "node": {},
                    "node_2": {
                        "properties": {"next": {"$ref": "#/$defs/node_2"}, "text": {"$ref": "#/$defs/text"}},
                        "$defs": {"n": {"type": "integer"}},
                    },
                    "text": {"type": "string"},
                },
            })
        );
        let old = told(json!({"$ref": "old.json"})).unwrap().unwrap();
        assert_eq!(old["$schema"], "http://json-schema.org/draft-07/schema#");
        assert!(told(json!({"properties": {"a": {"$ref": "old.json"}}})).is_err());
        assert!(told(json!({"properties": {"a": {"$ref": "named.json"}}})).is_err());
    }
}
