//! What a schema refers to outside of itself: meta-schemas of JSON Schema, and nothing else. No file is read for a
//! reference, and nothing is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use jsonschema::{Draft, Retrieve, Uri};
use serde_json::Value;

use crate::json_schema::meta_schemas::{find_meta_schema, meta_schema_root};
use crate::json_schema::references::{find_references, resolve_target};
use crate::json_schema::schema_error::SchemaError;
use crate::json_schema::subschemas::{Subschema, find_subschemas};

/// The base of all references.
pub(crate) const BASE_URI: &str = "json-schema:///";

/// The meta-schemas that a schema reaches, by their addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct SchemaLibrary {
    pub(crate) meta_schemas: BTreeMap<String, Value>,
    /// The draft of documents without `$schema`.
    pub(crate) draft: Draft,
}

impl SchemaLibrary {
    /// Finds every meta-schema that `schema` reaches. References that lead anywhere else are errors.
    pub(crate) fn load(schema: &Value) -> (Self, Vec<SchemaError>) {
        let mut library = Self {
            meta_schemas: BTreeMap::new(),
            draft: Draft::default().detect(schema),
        };
        let mut errors = Vec::new();
        let mut pending = library.find_targets(schema, BASE_URI, &mut errors);
        while let Some((address, document)) = pending.pop_first() {
            if !library.meta_schemas.contains_key(&address) {
                pending.extend(library.find_targets(&document, &address, &mut errors));
                library.meta_schemas.insert(address, document);
            }
        }
        (library, errors)
    }

    /// Returns the meta-schemas that the document at `address` names.
    fn find_targets(
        &self,
        document: &Value,
        address: &str,
        errors: &mut Vec<SchemaError>,
    ) -> BTreeMap<String, Value> {
        let subschemas = find_subschemas(document, address, self.draft);
        let own: BTreeSet<&str> = subschemas
            .iter()
            .map(|subschema| subschema.base.as_str())
            .chain([BASE_URI])
            .collect();
        let mut found = BTreeMap::new();
        for reference in find_references(&subschemas) {
            let target = match resolve_target(&reference.subschema.base, reference.text) {
                Ok(target) => target,
                Err(error) => {
                    errors.push(error.at(reference.pointer()));
                    continue;
                }
            };
            if own.contains(target.as_str()) {
                continue;
            }
            match find_meta_schema(target.as_str()) {
                Some(meta_schema) => {
                    found.insert(target.into(), meta_schema);
                }
                None => errors.push(outside_error(reference.text).at(reference.pointer())),
            }
        }
        found
    }

    /// Whether a schema refers to the meta-schema of a draft that isn't its own.
    pub(crate) fn has_foreign_meta_schema(&self) -> bool {
        let mut roots = self
            .meta_schemas
            .keys()
            .filter_map(|address| meta_schema_root(address));
        roots.any(|(_, draft)| draft != self.draft)
    }

    /// Finds all schemas in `schema`, and then those in the meta-schemas.
    pub(crate) fn find_all_subschemas<'a>(&'a self, schema: &'a Value) -> Vec<Subschema<'a>> {
        let mut subschemas = find_subschemas(schema, BASE_URI, self.draft);
        for (address, meta_schema) in &self.meta_schemas {
            let first = subschemas.len();
            let more = find_subschemas(meta_schema, address, self.draft).into_iter();
            subschemas.extend(more.map(|subschema| Subschema {
                parent: subschema.parent.map(|parent| parent + first),
                ..subschema
            }));
        }
        subschemas
    }
}

fn outside_error(reference: &str) -> SchemaError {
    let message = format!("`{reference}` leads out of the schema; references are never fetched");
    SchemaError::new("", message).with_hint(
        "copy what it refers to into `$defs`, and refer to `#/$defs/NAME`; `input_schema: FILE` takes a whole schema from a JSON file",
    )
}

impl Retrieve for SchemaLibrary {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let meta_schema = self.meta_schemas.get(uri.as_str()).cloned();
        meta_schema.ok_or_else(|| "it leads out of the schema".into())
    }
}
