//! The meta-schemas of JSON Schema, to which a schema may refer.

use std::sync::LazyLock;

use jsonschema::{Draft, Registry, RegistryBuilder};
use serde_json::{Value, json};

use crate::json_schema::library::BASE_URI;

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
pub(crate) fn find_meta_schema(address: &str) -> Option<Value> {
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
