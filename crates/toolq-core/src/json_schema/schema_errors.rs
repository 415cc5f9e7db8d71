//! Finds everything that makes a schema unusable: violations of its draft's meta-schema, its patterns, its references. Of
//! a foreign schema, it is left out.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use serde_json::{Map, Value, json};

use crate::json::pointer_tokens;
use crate::json_schema::library::{SchemaLibrary, validation_options};
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
    let options = validation_options(library);
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

// Leaves out of a foreign schema what can't be checked.

/// Maximum number of keywords that are left out of a schema.
const MAX_LEFT_OUT: usize = 64;
/// Keywords whose members have names, and are schemas.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];
/// Keywords that reject more if the schema in them rejects less.
const INVERTING: [&str; 3] = ["not", "oneOf", "if"];

/// Returns a schema without the keywords that can't be checked, and what is wrong with each of them. It accepts whatever the whole
/// schema would. What has no keyword to leave out stays.
pub(crate) fn leave_out_unusable(schema: &Value) -> (Cow<'_, Value>, Vec<SchemaError>) {
    let mut usable = Cow::Borrowed(schema);
    let mut left_out = Vec::new();
    loop {
        let count = left_out.len();
        for error in find_schema_errors(&usable) {
            if left_out.len() < MAX_LEFT_OUT && leave_out(usable.to_mut(), &error.pointer) {
                left_out.push(error);
            }
        }
        if left_out.len() == count {
            return (usable, left_out);
        }
    }
}

/// Leaves out the keyword at a pointer, or the one around it. Returns whether there was one.
fn leave_out(schema: &mut Value, pointer: &str) -> bool {
    let tokens: Vec<String> = pointer_tokens(pointer).collect();
    let place = keyword_of(&tokens);
    let Some((key, parents)) = place.split_last() else {
        return false;
    };
    let parent = parents.iter().try_fold(schema, |value, token| match value {
        Value::Object(members) => members.get_mut(token),
        Value::Array(items) => items.get_mut(token.parse::<usize>().ok()?),
        _ => None,
    });
    let Some(Value::Object(parent)) = parent else {
        return false;
    };
    // Without their siblings, these would reject what was allowed.
    if matches!(&**key, "properties" | "patternProperties") {
        for rest in ["additionalProperties", "unevaluatedProperties"] {
            parent.remove(rest);
        }
    }
    match parent.get_mut(key) {
        // A name stays allowed.
        Some(value) if parents.last().is_some_and(|last| is_map(last)) => {
            let accepting = Value::Object(Map::new());
            std::mem::replace(value, accepting) != Value::Object(Map::new())
        }
        Some(_) => parent.remove(key).is_some(),
        None => false,
    }
}

/// Returns the place of the keyword to leave out: the one that the tokens end in, or one around it that rejects more if less is in
/// it, or that has a pattern for a name.
fn keyword_of(tokens: &[String]) -> &[String] {
    let mut end = 0;
    let mut is_keyword = true;
    for (at, token) in tokens.iter().enumerate() {
        let is_index = token.parse::<usize>().is_ok();
        if is_keyword && (INVERTING.contains(&&**token) || token == "patternProperties") {
            return &tokens[..=at];
        }
        if is_keyword && is_index {
            continue;
        }
        end = at + 1;
        is_keyword = !(is_keyword && is_map(token));
    }
    &tokens[..end]
}

fn is_map(token: &str) -> bool {
    MAPS.contains(&token)
}

#[cfg(test)]
mod lenient_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_cannot_be_checked_is_left_out() {
        for (schema, expected) in [
            (
                json!({"properties": {"a": {"pattern": "^(?!x)", "type": "string"}}}),
                json!({"properties": {"a": {"type": "string"}}}),
            ),
            (
                json!({"properties": {"a": {"required": true}}}),
                json!({"properties": {"a": {}}}),
            ),
            (
                json!({"required": null, "type": "object"}),
                json!({"type": "object"}),
            ),
            (json!({"required": ["a", 1]}), json!({})),
            (
                json!({"properties": {"a": "string"}, "additionalProperties": false}),
                json!({"properties": {"a": {}}, "additionalProperties": false}),
            ),
            (
                json!({"properties": [], "additionalProperties": false}),
                json!({}),
            ),
            (
                json!({"patternProperties": {"(?!x)": {}}, "additionalProperties": false}),
                json!({}),
            ),
            (json!({"not": {"pattern": "(?=x)"}}), json!({})),
            (
                json!({"anyOf": [{"type": "str"}, {"type": "null"}]}),
                json!({"anyOf": [{}, {"type": "null"}]}),
            ),
            (
                json!({"$ref": "#/nowhere", "type": "object"}),
                json!({"type": "object"}),
            ),
            (
                json!({"$schema": "urn:x", "properties": {"not": {"type": "str"}}}),
                json!({"properties": {"not": {}}}),
            ),
        ] {
            let (usable, left_out) = leave_out_unusable(&schema);
            assert_eq!(*usable, expected, "{schema}");
            assert!(!left_out.is_empty(), "{schema}");
            assert_eq!(find_schema_errors(&usable), [], "{schema}");
        }
    }

    #[test]
    fn a_usable_schema_stays_as_it_is() {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": "^x"}}});
        assert_eq!(
            leave_out_unusable(&schema),
            (Cow::Borrowed(&schema), vec![])
        );
        // There is no keyword to leave out.
        assert_eq!(leave_out_unusable(&json!(3)).1, []);
    }
}
