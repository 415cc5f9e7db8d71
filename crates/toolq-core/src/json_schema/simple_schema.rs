//! Recognizes simple schemas: those that are evidently valid, refer to nothing, have no unknown keywords, and mean the same in
//! draft 7 as in draft 2020-12. Most schemas of tools are simple, and this takes a small part of the time of checking them
//! against their meta-schema and compiling their patterns.

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::json_schema::simple_pattern::is_simple_pattern;

/// Types that a schema can name.
pub(crate) const TYPE_NAMES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// Maximum number of `required` properties, each of which is compared with all others.
const MAX_REQUIRED: usize = 100;

/// Returns whether `schema` is simple. One that isn't may be valid all the same.
pub(crate) fn is_simple_schema(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(members) => members
            .iter()
            .all(|(keyword, value)| is_simple_keyword(keyword, value)),
        _ => false,
    }
}

/// Returns whether a keyword of JSON Schema 2020-12 has a value that it can have, by what its meta-schema says.
fn is_simple_keyword(keyword: &str, value: &Value) -> bool {
    match keyword {
        "default" | "const" => true,
        "$comment" | "description" | "format" | "title" => value.is_string(),
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => value.is_boolean(),
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => value.is_number(),
        "maxItems" | "maxLength" | "maxProperties" | "minItems" | "minLength" | "minProperties" => {
            value.is_u64()
        }
        "enum" | "examples" => value.as_array().is_some_and(|items| !items.is_empty()),
        "pattern" => value.as_str().is_some_and(is_simple_pattern),
        "properties" => value
            .as_object()
            .is_some_and(|named| named.values().all(is_simple_schema)),
        "required" => value.as_array().is_some_and(|names| are_names(names)),
        "type" => is_type(value),
        "allOf" | "anyOf" | "oneOf" => value
            .as_array()
            .is_some_and(|each| !each.is_empty() && each.iter().all(is_simple_schema)),
        "additionalProperties"
        | "contains"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then" => is_simple_schema(value),
        _ => false,
    }
}

/// Returns whether these are different texts.
fn are_names(names: &[Value]) -> bool {
    let is_new =
        |(index, name): (usize, &Value)| name.is_string() && !names[..index].contains(name);
    names.len() <= MAX_REQUIRED && names.iter().enumerate().all(is_new)
}

fn is_type(value: &Value) -> bool {
    let is_name = |name: &str| TYPE_NAMES.contains(&name);
    match value {
        Value::String(name) => is_name(name),
        Value::Array(names) => {
            !names.is_empty()
                && are_names(names)
                && names.iter().filter_map(Value::as_str).all(is_name)
        }
        _ => false,
    }
}
