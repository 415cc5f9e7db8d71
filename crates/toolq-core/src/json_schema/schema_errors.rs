//! Finds everything that makes a schema unusable: violations of its draft's meta-schema, its patterns, its references.

#[cfg(test)]
mod tests;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use serde_json::{Value, json};

use crate::json_schema::library::{FormatPolicy, SchemaLibrary, validation_options};
use crate::json_schema::patterns::{self, rejected_pattern_error, with_short_patterns};
use crate::json_schema::problem_details::error_message;
use crate::json_schema::schema_graph::SchemaGraph;
use crate::json_schema::subschemas::{BASE_URI, SchemaError, Subschema, find_subschemas};
use crate::text::{MAX_NAME_CHARS, truncate};

/// Maximum number of schemas that an input may be checked against: at about 20 ns each, a third of a second.
const MAX_UNFOLDED_SCHEMAS: u64 = 1 << 24;
/// Types that a schema can name.
const TYPE_NAMES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// What JSON Schema calls the types of other languages.
const FOREIGN_TYPE_NAMES: [(&str, &[&str]); 6] = [
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

/// Keywords that the compiler reads in a draft whose meta-schema doesn't say which values they may have.
const UNDESCRIBED_KEYWORDS: [(Draft, &str); 2] = [
    (Draft::Draft6, "contentEncoding"),
    (Draft::Draft6, "contentMediaType"),
];

/// Finds everything that makes `schema` unusable.
pub fn find_schema_errors(schema: &Value) -> Vec<SchemaError> {
    let draft = Draft::default().detect(schema);
    if draft == Draft::Unknown {
        return vec![unknown_draft_error("/$schema".to_owned())];
    }
    let mut found = find_document_errors(schema, draft);
    let (library, unreachable) = SchemaLibrary::load(schema);
    found.extend(unreachable);
    if found.is_empty() {
        found = find_reference_errors(schema, draft, library);
    }
    found
}

fn unknown_draft_error(pointer: String) -> SchemaError {
    SchemaError::new(pointer, "it isn't a JSON Schema draft that toolq knows")
        .with_hint("omit it for `https://json-schema.org/draft/2020-12/schema`; 2019-09 and drafts 7, 6 and 4 are supported too")
}

/// Finds schemas inside `document` whose `$schema` is unknown, and so the meaning of their keywords.
pub(crate) fn find_unknown_drafts(document: &Value, draft: Draft) -> Vec<SchemaError> {
    let subschemas = find_subschemas(document, BASE_URI, draft);
    let is_unknown = |subschema: &&Subschema<'_>| {
        let declared = subschema.schema.get("$schema");
        declared.is_some_and(|uri| draft.detect(&json!({"$schema": uri})) == Draft::Unknown)
    };
    let unknown = subschemas.iter().filter(is_unknown);
    unknown
        .map(|subschema| unknown_draft_error(format!("{}/$schema", subschema.pointer)))
        .collect()
}

/// Finds errors that only show once the meta-schemas are loaded: references that don't resolve, schemas that cause too
/// much work, and errors that only the compiler finds.
fn find_reference_errors(schema: &Value, draft: Draft, library: SchemaLibrary) -> Vec<SchemaError> {
    let graph = match SchemaGraph::build(schema, draft, &library) {
        Err(dangling) => return dangling,
        Ok(graph) => graph,
    };
    if graph
        .as_ref()
        .is_some_and(|graph| graph.count_unfolded_schemas() > MAX_UNFOLDED_SCHEMAS)
    {
        let message = "its references multiply: expanded, it has more than 16 million schemas";
        return vec![SchemaError::new("", message).with_hint(
            "use fewer `anyOf`, `oneOf` and `allOf` that refer to the same schema twice",
        )];
    }
    if graph.is_none() && !needs_compiler(schema, draft) {
        return Vec::new();
    }
    let options = validation_options(library, FormatPolicy::Annotate);
    let built = options.build(&with_short_patterns(schema));
    built
        .err()
        .iter()
        .map(|error| from_build_error(error, schema))
        .collect()
}

/// Returns whether only the compiler finds all errors: a part of `schema` has its own address or draft, a reference (even one
/// that isn't a string), or a keyword that the meta-schema of `draft` doesn't describe.
fn needs_compiler(schema: &Value, draft: Draft) -> bool {
    let needs = |subschema: &Subschema<'_>| {
        let has = |key| subschema.schema.contains_key(key);
        let nested = subschema.parent.is_some();
        let mut undescribed = UNDESCRIBED_KEYWORDS.iter();
        has("$id")
            || has("id")
            || has("$ref")
            || nested && has("$schema")
            || undescribed.any(|(of_draft, keyword)| *of_draft == draft && has(keyword))
    };
    find_subschemas(schema, BASE_URI, draft).iter().any(needs)
}

/// Converts an error of the compiler, located in `schema` if possible.
pub(crate) fn from_build_error(error: &ValidationError<'_>, schema: &Value) -> SchemaError {
    let pointer =
        Some(error.instance_path().as_str()).filter(|pointer| schema.pointer(pointer).is_some());
    let pointer = pointer.unwrap_or_default().to_owned();
    match (error.kind(), error.instance().as_str()) {
        (ValidationErrorKind::Format { .. }, Some(pattern)) => {
            rejected_pattern_error(pointer, pattern)
        }
        (ValidationErrorKind::Type { .. }, _) => SchemaError::new(pointer, error_message(error)),
        _ => SchemaError::new(pointer, truncate(&error.to_string(), 2 * MAX_NAME_CHARS)),
    }
}

/// Finds the errors of a single document.
fn find_document_errors(document: &Value, draft: Draft) -> Vec<SchemaError> {
    let mut found = check_against_meta_schema(document, draft);
    found.extend(patterns::find_rejected_patterns(document));
    found.extend(find_unknown_drafts(document, draft));
    found
}

fn check_against_meta_schema(schema: &Value, draft: Draft) -> Vec<SchemaError> {
    let validator = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        _ => jsonschema::draft202012::meta::validator(),
    };
    if validator.is_valid(schema) {
        return Vec::new();
    }
    let mut found: Vec<SchemaError> = validator
        .iter_errors(schema)
        .map(|error| meta_schema_error(&error))
        .collect();
    found.dedup();
    found
}

fn meta_schema_error(error: &ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().as_str();
    match error.instance().as_str() {
        Some(name) if pointer.ends_with("/type") => unknown_type_error(pointer, name),
        _ => SchemaError::new(pointer, error_message(error)),
    }
}

fn unknown_type_error(pointer: &str, name: &str) -> SchemaError {
    let name: String = name.chars().take(40).collect();
    let fault = SchemaError::new(pointer, format!("`{name}` is not a JSON Schema type"));
    let lower = name.to_lowercase();
    let suggestion = FOREIGN_TYPE_NAMES
        .iter()
        .find(|(_, foreign)| foreign.contains(&lower.as_str()))
        .map(|(own, _)| *own)
        .or_else(|| {
            TYPE_NAMES
                .into_iter()
                .find(|own| strsim::levenshtein(own, &lower) <= 2)
        });
    fault.with_hint(match suggestion {
        Some(own) => format!("did you mean `{own}`?"),
        None if lower == "any" => "omit `type` to allow any value".to_owned(),
        None => format!("known: {}", TYPE_NAMES.join(", ")),
    })
}
