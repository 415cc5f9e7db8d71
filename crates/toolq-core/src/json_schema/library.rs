//! What a schema refers to outside of itself: meta-schemas of JSON Schema, and nothing else. No file is read for a
//! reference, and nothing is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::LazyLock;

use jsonschema::{
    Draft, PatternOptions, Registry, RegistryBuilder, Retrieve, Uri, ValidationOptions,
};
use serde_json::{Value, json};

use crate::json_schema::subschemas::{
    BASE_URI, SchemaError, Subschema, find_references, find_subschemas, resolve_target,
};

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

// The meta-schemas of JSON Schema, to which a schema may refer.

/// Where the meta-schemas of all drafts are. The `jsonschema` crate has them.
const META_SCHEMA_ADDRESSES: [(&str, Draft); 5] = [
    ("http://json-schema.org/draft-04/schema", Draft::Draft4),
    ("http://json-schema.org/draft-06/schema", Draft::Draft6),
    ("http://json-schema.org/draft-07/schema", Draft::Draft7),
    ("https://json-schema.org/draft/2019-09/", Draft::Draft201909),
    ("https://json-schema.org/draft/2020-12/", Draft::Draft202012),
];

/// A registry with the meta-schemas of all drafts. The `jsonschema` crate adds only those of a schema's own draft by itself.
pub(crate) static ALL_META_SCHEMAS: LazyLock<Option<Registry<'static>>> = LazyLock::new(|| {
    // A document whose `$schema` is a vocabulary makes the crate add them all.
    let document = json!({"$schema": "https://json-schema.org/draft/2020-12/meta/core"});
    let builder = Registry::new().add("json-schema:///meta-schemas", document);
    builder.and_then(RegistryBuilder::prepare).ok()
});

/// Returns where the meta-schema is that `address` belongs to, and its draft.
pub(crate) fn meta_schema_root(address: &str) -> Option<(&'static str, Draft)> {
    META_SCHEMA_ADDRESSES
        .into_iter()
        .find(|(known, _)| address == *known || known.ends_with('/') && address.starts_with(known))
}

/// Returns the meta-schema, or the vocabulary of one, at `address`.
fn find_meta_schema(address: &str) -> Option<Value> {
    let (root, draft) = meta_schema_root(address)?;
    // A registry has the meta-schemas that its documents refer to.
    let meta_schema = format!("{root}{}", if root.ends_with('/') { "schema" } else { "" });
    let document = json!({"$schema": meta_schema, "$ref": address});
    let registry = Registry::new()
        .draft(draft)
        .add(BASE_URI, draft.create_resource_ref(&document))
        .and_then(RegistryBuilder::prepare)
        .ok()?;
    let base = jsonschema::uri::from_str(BASE_URI).ok()?;
    let resolved = registry.resolver(base).lookup(address).ok()?;
    Some(resolved.contents().clone())
}

// How schemas are compiled.

/// Maximum size of a compiled pattern, in bytes.
pub(crate) const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The options with which toolq compiles every schema; `library` provides the schemas that it refers to.
pub(crate) fn validation_options(library: SchemaLibrary) -> ValidationOptions<'static> {
    let has_foreign_meta_schema = library.has_foreign_meta_schema();
    let options = jsonschema::options()
        .with_base_uri(BASE_URI)
        .with_retriever(library)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES))
        .should_validate_formats(false);
    // The registry is only built where it is needed.
    if has_foreign_meta_schema && let Some(registry) = ALL_META_SCHEMAS.as_ref() {
        return options.with_registry(registry);
    }
    options
}
