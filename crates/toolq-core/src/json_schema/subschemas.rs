//! The schemas inside a schema, each with its pointer and base address, and the references between them.
//!
//! Only keywords that hold schemas are followed: a `$ref` inside `const`, `default` or `examples` is data, and a
//! property may be named `pattern`.

use std::rc::Rc;

use jsonschema::Draft;
use serde_json::{Map, Value};
use url::Url;

use crate::json::escape_pointer_token;

/// The base of all references.
pub(crate) const BASE_URI: &str = "json-schema:///";

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
const NAMED_APPLICATORS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// A schema inside a document.
pub(crate) struct Subschema<'a> {
    /// JSON pointer from the document's root.
    pub(crate) pointer: String,
    /// What its references are relative to.
    pub(crate) base: Rc<Url>,
    /// The schema. The schemas `true` and `false` are left out.
    pub(crate) schema: &'a Map<String, Value>,
    /// The index of the enclosing schema.
    pub(crate) parent: Option<usize>,
}

/// Finds all schemas in the document at `address`: the root first, each one after the schema that encloses it.
/// `draft` applies if the document has no `$schema`.
pub(crate) fn find_subschemas<'a>(
    document: &'a Value,
    address: &str,
    draft: Draft,
) -> Vec<Subschema<'a>> {
    let id_keyword = draft.detect(document).id_keyword();
    let mut found: Vec<Subschema<'a>> = Vec::new();
    let Ok(base) = Url::parse(address).map(Rc::new) else {
        return found;
    };
    let mut pending = vec![(String::new(), base, None, document)];
    while let Some((pointer, base, parent, value)) = pending.pop() {
        let Some(schema) = value.as_object() else {
            continue;
        };
        let base = resolve_base(schema, base, id_keyword);
        for (pointer, value) in direct_subschemas(schema, &pointer) {
            pending.push((pointer, Rc::clone(&base), Some(found.len()), value));
        }
        found.push(Subschema {
            pointer,
            base,
            schema,
            parent,
        });
    }
    found
}

/// Returns the direct subschemas of the schema at `pointer`, with their own pointers.
fn direct_subschemas<'a>(
    schema: &'a Map<String, Value>,
    pointer: &str,
) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        let child_pointer = |part: &str| [pointer, "/", keyword, "/", part].concat();
        match value {
            Value::Object(named) if NAMED_APPLICATORS.contains(&keyword) => {
                let each = named.iter();
                found.extend(
                    each.map(|(name, value)| (child_pointer(&escape_pointer_token(name)), value)),
                );
            }
            _ if !APPLICATORS.contains(&keyword) => {}
            Value::Array(items) => {
                let each = items.iter().enumerate();
                found.extend(each.map(|(index, item)| (child_pointer(&index.to_string()), item)));
            }
            one => found.push(([pointer, "/", keyword].concat(), one)),
        }
    }
    found
}

/// Applies `$id` (`id` in draft 4), which changes the base of a schema and everything below it.
fn resolve_base(schema: &Map<String, Value>, base: Rc<Url>, id_keyword: &str) -> Rc<Url> {
    let id = schema.get(id_keyword).and_then(Value::as_str);
    match id.and_then(|id| base.join(id).ok()) {
        Some(mut joined) => {
            joined.set_fragment(None);
            Rc::new(joined)
        }
        None => base,
    }
}

// References from a schema to others, and the addresses that they resolve to.

/// Keywords whose value is a reference.
pub(crate) const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A reference and the schema that contains it.
#[derive(Clone, Copy)]
pub(crate) struct SchemaReference<'p, 'a> {
    pub(crate) subschema: &'p Subschema<'a>,
    pub(crate) keyword: &'static str,
    pub(crate) text: &'a str,
}

impl SchemaReference<'_, '_> {
    /// JSON pointer to the reference itself.
    pub(crate) fn pointer(&self) -> String {
        format!("{}/{}", self.subschema.pointer, self.keyword)
    }
}

/// Returns the references in `subschemas`.
pub(crate) fn find_references<'p, 'a>(
    subschemas: &'p [Subschema<'a>],
) -> impl Iterator<Item = SchemaReference<'p, 'a>> {
    subschemas.iter().flat_map(|subschema| {
        REFERENCE_KEYWORDS.into_iter().filter_map(move |keyword| {
            let text = subschema.schema.get(keyword)?.as_str()?;
            Some(SchemaReference {
                subschema,
                keyword,
                text,
            })
        })
    })
}

/// Returns the address of the document that `reference` points to.
pub(crate) fn resolve_target(base: &Rc<Url>, reference: &str) -> Result<Url, SchemaError> {
    let mut target = base.join(reference).map_err(|error| {
        SchemaError::new(
            "",
            format!("`{reference}` isn't a valid reference: {error}"),
        )
    })?;
    target.set_fragment(None);
    Ok(target)
}

// One error of a declared schema.

/// Why toolq can't use a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer into the schema.
    pub pointer: String,
    /// What is wrong there, as one sentence without a final period.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl SchemaError {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn at(self, pointer: String) -> Self {
        Self { pointer, ..self }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
