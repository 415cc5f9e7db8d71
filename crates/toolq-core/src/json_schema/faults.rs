//! A schema → everything that makes it none: against the meta-schema of its draft, its patterns, its references.

#[cfg(test)]
mod tests;

use std::path::Path;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use serde_json::Value;

use crate::json_schema::library::{BASE, Library};
use crate::json_schema::links::Links;
use crate::json_schema::patterns;
use crate::json_schema::patterns::refused_pattern;
use crate::json_schema::schema::{SchemaFault, options};
use crate::json_schema::walk::{Place, places};
use crate::json_schema::wording::text;
use crate::text::{MAX_NAME, clipped};

/// How many schemas an input may meet: at about 20 ns each, a third of a second.
const MAX_UNFOLDED: u64 = 1 << 24;
/// Types of other languages, and what JSON Schema calls them.
const FOREIGN_TYPES: [(&str, &[&str]); 6] = [
    (
        "object",
        &["dict", "map", "hashmap", "record", "struct", "json"],
    ),
    (
        "array",
        &["list", "tuple", "arraylist", "set", "vector", "sequence"],
    ),
    ("string", &["str", "char", "text", "date", "uuid"]),
    (
        "integer",
        &["int", "long", "short", "byte", "int32", "int64", "uint"],
    ),
    ("number", &["float", "double", "decimal"]),
    ("boolean", &["bool"]),
];
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Everything that makes `schema` none, without compiling it; files that it refers to are read from `dir`, the folder
/// of tools.yaml.
pub fn schema_faults(schema: &Value, dir: &Path) -> Vec<SchemaFault> {
    let draft = Draft::default().detect(schema);
    if draft == Draft::Unknown {
        return vec![
            SchemaFault::new("/$schema", "it names no draft of JSON Schema that toolq knows")
                .with_hint("leave it out for `https://json-schema.org/draft/2020-12/schema`; 2019-09 and drafts 7, 6 and 4 are known too"),
        ];
    }
    let mut found = in_document(schema, draft);
    let (library, unreachable) = Library::of(schema, dir);
    found.extend(unreachable);
    for (address, file) in &library.files {
        let name = address.trim_start_matches(BASE);
        for fault in in_document(&file.value, draft.detect(&file.value)) {
            let message = format!("in `{name}` at `{}`: {}", fault.pointer, fault.message);
            found.push(SchemaFault {
                pointer: file.from.clone(),
                message,
                ..fault
            });
        }
    }
    if found.is_empty() {
        beyond(schema, draft, library)
    } else {
        found
    }
}

/// What only shows once all documents are there: references that lead nowhere, more work than an input is worth, and
/// what the compiler alone finds.
fn beyond(schema: &Value, draft: Draft, library: Library) -> Vec<SchemaFault> {
    let links = match Links::of(schema, draft, &library) {
        Err(dangling) => return dangling,
        Ok(links) => links,
    };
    if links
        .as_ref()
        .is_some_and(|links| links.unfolded() > MAX_UNFOLDED)
    {
        let message = "its references multiply: unfolded, it has more than 16 million schemas";
        return vec![
            SchemaFault::new("", message)
                .with_hint("let fewer `anyOf`, `oneOf` and `allOf` lead to the same schema twice"),
        ];
    }
    if links.is_none() && !is_addressed(schema) {
        return Vec::new();
    }
    let built = options(library).build(schema);
    built
        .err()
        .iter()
        .map(|error| of_build_error(error, schema))
        .collect()
}

/// Whether a part of `schema` has an address or a draft of its own, or a reference that is no text.
fn is_addressed(schema: &Value) -> bool {
    let addressed = |place: &Place<'_>| {
        let has = |key| place.schema.contains_key(key);
        let nested = place.parent.is_some();
        has("$id") || has("id") || has("$ref") || nested && has("$schema")
    };
    places(schema, BASE).iter().any(addressed)
}

/// A problem that the compiler found, placed in `schema` where it stands there.
pub(crate) fn of_build_error(error: &ValidationError<'_>, schema: &Value) -> SchemaFault {
    let pointer =
        Some(error.instance_path().as_str()).filter(|place| schema.pointer(place).is_some());
    let pointer = pointer.unwrap_or_default().to_owned();
    match (error.kind(), error.instance().as_str()) {
        (ValidationErrorKind::Format { .. }, Some(pattern)) => refused_pattern(pointer, pattern),
        _ => SchemaFault::new(pointer, clipped(&error.to_string(), 2 * MAX_NAME)),
    }
}

/// The faults of one document by itself.
fn in_document(document: &Value, draft: Draft) -> Vec<SchemaFault> {
    let mut found = against_meta_schema(document, draft);
    found.extend(patterns::refused(document));
    found
}

fn against_meta_schema(schema: &Value, draft: Draft) -> Vec<SchemaFault> {
    let meta = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        _ => jsonschema::draft202012::meta::validator(),
    };
    if meta.is_valid(schema) {
        return Vec::new();
    }
    let mut found: Vec<SchemaFault> = meta
        .iter_errors(schema)
        .map(|error| meta_fault(&error))
        .collect();
    found.dedup();
    found
}

fn meta_fault(error: &ValidationError<'_>) -> SchemaFault {
    let pointer = error.instance_path().as_str();
    match error.instance().as_str() {
        Some(name) if pointer.ends_with("/type") => unknown_type(pointer, name),
        _ => SchemaFault::new(pointer, text(error)),
    }
}

fn unknown_type(pointer: &str, name: &str) -> SchemaFault {
    let name: String = name.chars().take(40).collect();
    let fault = SchemaFault::new(pointer, format!("`{name}` is no type of JSON Schema"));
    let lower = name.to_lowercase();
    let meant = FOREIGN_TYPES
        .iter()
        .find(|(_, foreign)| foreign.contains(&lower.as_str()))
        .map(|(own, _)| *own)
        .or_else(|| {
            TYPES
                .into_iter()
                .find(|own| strsim::levenshtein(own, &lower) <= 2)
        });
    fault.with_hint(match meant {
        Some(own) => format!("did you mean `{own}`?"),
        None if lower == "any" => "leave `type` out where any value will do".to_owned(),
        None => format!("known: {}", TYPES.join(", ")),
    })
}
