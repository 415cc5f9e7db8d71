//! Looks up what values a schema accepts, as far as a check of a command needs it. Keywords that combine schemas aren't
//! looked into.

use serde_json::Value;

use crate::json_schema::PatternSyntax;
use crate::tools_file::resolve::schema_presence::allows_type;

/// Whether a schema accepts a value that begins with `-` when it is an argument: a string, or a negative number.
pub(crate) fn may_start_with_dash(schema: &Value) -> bool {
    let starts_with_dash = |value: &Value| match value {
        Value::String(text) => text.starts_with('-'),
        other => other.to_string().starts_with('-'),
    };
    if let Some(constant) = schema.get("const") {
        return starts_with_dash(constant);
    }
    if let Some(Value::Array(all)) = schema.get("enum") {
        return all.iter().any(starts_with_dash);
    }
    let may_match_dash =
        |pattern| PatternSyntax::parse(pattern).is_none_or(|syntax| syntax.may_begin_with_dash());
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let may_be_string = allows_type(schema, "string") && pattern.is_none_or(may_match_dash);
    let is_number_type = allows_type(schema, "number") || allows_type(schema, "integer");
    may_be_string || is_number_type && !excludes_negative(schema)
}

fn excludes_negative(schema: &Value) -> bool {
    ["minimum", "exclusiveMinimum"]
        .iter()
        .filter_map(|keyword| schema.get(keyword).and_then(Value::as_f64))
        .any(|least| least >= 0.0)
}

/// Whether a schema only accepts plain values, which mean nothing to any program: fixed values, booleans, numbers, or texts
/// of letters, digits and `._,+-`.
pub(crate) fn accepts_only_plain_text(schema: &Value) -> bool {
    if schema.get("const").is_some() || schema.get("enum").is_some() {
        return true;
    }
    let pattern_is_plain = || {
        let pattern = schema.get("pattern").and_then(Value::as_str);
        let syntax = pattern.and_then(PatternSyntax::parse);
        syntax.is_some_and(|syntax| syntax.is_plain())
    };
    let is_plain_type = |name: &str| match name {
        "integer" | "number" | "boolean" | "null" => true,
        "string" => pattern_is_plain(),
        _ => false,
    };
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => {
            // `items` isn't about the items that `prefixItems` describes.
            schema.get("prefixItems").is_none()
                && schema.get("items").is_some_and(accepts_only_plain_text)
        }
        Some(Value::String(name)) => is_plain_type(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).all(is_plain_type),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_leading_dash_is_possible_unless_the_schema_excludes_it() {
        for (schema, may) in [
            (json!({}), true),
            (json!({"type": "string"}), true),
            (json!({"type": ["string", "null"]}), true),
            (json!({"type": "boolean"}), false),
            (json!({"enum": ["a", "b"]}), false),
            (json!({"enum": ["a", "-b"]}), true),
            (json!({"enum": [1, -1]}), true),
            (json!({"const": "a"}), false),
            (json!({"type": "integer"}), true),
            (json!({"type": "number", "minimum": -1}), true),
            (json!({"type": "integer", "minimum": 0}), false),
            (json!({"type": "number", "exclusiveMinimum": 0}), false),
            (json!({"type": ["integer", "string"], "minimum": 1}), true),
            (json!({"type": "string", "pattern": "^[a-z]"}), false),
            (json!({"type": "string", "pattern": "^(?!-)"}), true),
        ] {
            assert_eq!(may_start_with_dash(&schema), may, "{schema}");
        }
    }

    #[test]
    fn plain_values_are_recognized() {
        for (schema, plain) in [
            (json!({"enum": ["a=b"]}), true),
            (json!({"type": "integer"}), true),
            (json!({"type": "string"}), false),
            (json!({"pattern": "^[a-z]+$"}), false),
            (json!({"type": "string", "pattern": "^[a-z]+$"}), true),
            (
                json!({"type": ["string", "null"], "pattern": "^[a-z]+$"}),
                true,
            ),
            (json!({"type": "string", "pattern": "^(?m)[a-z]+$"}), false),
            (json!({"type": "array", "items": {"enum": ["a"]}}), true),
            (json!({"type": "array"}), false),
            (
                json!({"type": "array", "prefixItems": [{}], "items": {"enum": ["a"]}}),
                false,
            ),
            (json!({}), false),
        ] {
            assert_eq!(accepts_only_plain_text(&schema), plain, "{schema}");
        }
    }
}
