//! Bundles a schema and the files that it refers to into one document, to send to a model: no API can follow a
//! reference to a file.
//!
//! `jsonschema` has a `bundle` and a `dereference`, which don't do this. `bundle` leaves every `$ref` as it is and embeds
//! the files with their `$id`; the APIs only follow `#/$defs/…`. `dereference` replaces each reference with its target,
//! which multiplies schemas, and leaves those that lead back to themselves.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jsonschema::Draft;
use serde_json::{Map, Value};

use crate::json_schema::library::{BASE_URI, LibraryFile, SchemaLibrary};
use crate::json_schema::references::{SchemaReference, find_references};
use crate::json_schema::subschemas::{Subschema, find_subschemas};

/// Keys alongside a reference to a whole file that may override those of the file.
const ANNOTATION_KEYWORDS: [&str; 3] = ["$comment", "description", "title"];
/// Keywords with a file's own address, which is useless once the file is part of another document.
const ID_KEYWORDS: [&str; 2] = ["$id", "id"];
/// Keywords that give a subschema its own name or address, which would be lost in another document.
const UNBUNDLEABLE_KEYWORDS: [&str; 6] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "id",
];

/// Adds the files that `schema` reaches in `dir` to its definitions; returns `None` if it reaches no files. `schema`
/// must be free of [errors](super::find_schema_errors). If it is only a reference to a file, that file's schema becomes
/// the document.
///
/// # Errors
/// Why the schemas can't be combined into one document.
pub fn bundle_schema(schema: &Value, dir: &Path) -> Result<Option<Value>, String> {
    let (library, _) = SchemaLibrary::load(schema, dir);
    if library.files.is_empty() {
        return Ok(None);
    }
    let (main, address) = find_main_document(schema, &library);
    let draft = Draft::default().detect(main);
    for (address, file) in &library.files {
        check_bundleable(file, address, draft)?;
    }
    let mut bundler = SchemaBundler {
        library: &library,
        main_address: address,
        definitions_keyword: match draft {
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7 => "definitions",
            _ => "$defs",
        },
        used_names: definition_names(main),
        names_by_address: BTreeMap::new(),
        pending: Vec::new(),
    };
    Ok(Some(bundler.bundle(main, schema)))
}

/// Checks that a file keeps its meaning inside another document.
fn check_bundleable(file: &LibraryFile, address: &str, draft: Draft) -> Result<(), String> {
    let LibraryFile {
        name,
        value: document,
        ..
    } = file;
    if draft.detect(document) != draft {
        return Err(format!("`{name}` uses another draft of JSON Schema"));
    }
    let find_unbundleable = |subschema: &Subschema<'_>| {
        let is_root_id = |key: &&str| subschema.parent.is_none() && ID_KEYWORDS.contains(key);
        let has = |key: &&str| subschema.schema.contains_key(*key) && !is_root_id(key);
        UNBUNDLEABLE_KEYWORDS.into_iter().find(has)
    };
    match find_subschemas(document, address, draft)
        .iter()
        .find_map(find_unbundleable)
    {
        Some(key) => Err(format!("`{name}` contains `{key}`")),
        None => Ok(()),
    }
}

/// Returns the document that holds the schema of the input, and its address: a file, if `schema` is only a reference to
/// one.
fn find_main_document<'s>(schema: &'s Value, library: &'s SchemaLibrary) -> (&'s Value, String) {
    let mut found = (schema, BASE_URI.to_owned());
    // References may form a cycle, so take no more steps than there are files.
    for _ in 0..library.files.len() {
        let (document, address) = &found;
        let is_bare = document.as_object().is_some_and(|keys| {
            keys.keys().all(|key| {
                ["$ref", "$schema"].contains(&&**key) || ANNOTATION_KEYWORDS.contains(&&**key)
            })
        });
        let subschemas = find_subschemas(document, address, library.draft);
        let reference = find_references(&subschemas).next().filter(|_| is_bare);
        let Some((file, fragment)) =
            reference.and_then(|reference| library.find_target(&reference))
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

fn definition_names(document: &Value) -> BTreeSet<String> {
    let each = ["$defs", "definitions"].into_iter();
    let each = each.filter_map(|key| document.get(key)?.as_object());
    each.flat_map(Map::keys).cloned().collect()
}

/// Combines several documents into one.
struct SchemaBundler<'l> {
    library: &'l SchemaLibrary,
    /// The address of the document that the others are added to.
    main_address: String,
    /// The keyword for definitions.
    definitions_keyword: &'static str,
    /// Names of definitions that are taken.
    used_names: BTreeSet<String>,
    /// The names of the added documents among the definitions, by address.
    names_by_address: BTreeMap<String, String>,
    /// Addresses of documents that have a name but aren't added yet.
    pending: Vec<String>,
}

impl SchemaBundler<'_> {
    /// Returns `main` with the annotations of `schema`, and with all files that it reaches.
    fn bundle(&mut self, main: &Value, schema: &Value) -> Value {
        let mut whole = self.rewrite_document(main, &self.main_address.clone());
        let Some(object) = whole.as_object_mut() else {
            return whole;
        };
        for key in ANNOTATION_KEYWORDS {
            if let Some(annotation) = schema.get(key) {
                object.insert(key.to_owned(), annotation.clone());
            }
        }
        let mut definitions = match object.remove(self.definitions_keyword) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        };
        while let Some(address) = self.pending.pop() {
            let mut file = self.rewrite_document(&self.library.files[&address].value, &address);
            if let Some(object) = file.as_object_mut() {
                object.shift_remove("$schema");
            }
            definitions.insert(self.assign_name(&address), file);
        }
        if !definitions.is_empty() {
            object.insert(self.definitions_keyword.to_owned(), definitions.into());
        }
        whole
    }

    /// Rewrites the references in `document` so that they point into the bundle.
    fn rewrite_document(&mut self, document: &Value, address: &str) -> Value {
        let mut rewritten = document.clone();
        for reference in find_references(&find_subschemas(document, address, self.library.draft)) {
            let to = self.rewrite_reference(&reference, address);
            if let Some(subschema) = rewritten.pointer_mut(&reference.subschema.pointer) {
                subschema[reference.keyword] = to.into();
            }
        }
        if let Some(object) = rewritten.as_object_mut().filter(|_| address != BASE_URI) {
            object.retain(|key, _| !ID_KEYWORDS.contains(&&**key));
        }
        rewritten
    }

    /// Returns the text of a reference in the document at `from`, as it must be in the bundle.
    fn rewrite_reference(&mut self, reference: &SchemaReference<'_, '_>, from: &str) -> String {
        let fragment = reference
            .text
            .split_once('#')
            .map_or("", |(_, fragment)| fragment);
        let to = self.library.find_target(reference).map(|(to, _)| to);
        let to = to.unwrap_or_else(|| from.to_owned());
        if to == self.main_address {
            return format!("#{fragment}");
        }
        let name = self.assign_name(&to);
        format!("#/{}/{name}{fragment}", self.definitions_keyword)
    }

    /// Returns the name of the file at `address` among the definitions, which is derived from the file name.
    fn assign_name(&mut self, address: &str) -> String {
        if let Some(name) = self.names_by_address.get(address) {
            return name.clone();
        }
        let file = &self.library.files[address].name;
        let file = file.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default();
        let to_name_char = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let stem: String = stem.chars().map(to_name_char).collect();
        let numbered = (2_u32..).map(|number| format!("{stem}_{number}"));
        let free = |name: &String| !self.used_names.contains(name);
        let name = std::iter::once(stem.clone()).chain(numbered).find(free);
        let name = name.unwrap_or_default();
        self.used_names.insert(name.clone());
        self.names_by_address
            .insert(address.to_owned(), name.clone());
        self.pending.push(address.to_owned());
        name
    }
}
