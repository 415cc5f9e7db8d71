//! The meta-schemas of JSON Schema, to which a schema may refer.

use jsonschema::{Draft, Registry, RegistryBuilder};
use serde_json::Value;

use crate::json_schema::library::BASE_URI;

/// Where the meta-schemas of all drafts are. The `jsonschema` crate has them.
const META_SCHEMA_ADDRESSES: [(&str, Draft); 5] = [
    ("http://json-schema.org/draft-04/schema", Draft::Draft4),
    ("http://json-schema.org/draft-06/schema", Draft::Draft6),
    ("http://json-schema.org/draft-07/schema", Draft::Draft7),
    ("https://json-schema.org/draft/2019-09/", Draft::Draft201909),
    ("https://json-schema.org/draft/2020-12/", Draft::Draft202012),
];

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
    let document = serde_json::json!({"$schema": meta_schema, "$ref": address});
    let registry = Registry::new()
        .draft(draft)
        .add(BASE_URI, draft.create_resource_ref(&document))
        .and_then(RegistryBuilder::prepare)
        .ok()?;
    let base = jsonschema::uri::from_str(BASE_URI).ok()?;
    let resolved = registry.resolver(base).lookup(address).ok()?;
    Some(resolved.contents().clone())
}
