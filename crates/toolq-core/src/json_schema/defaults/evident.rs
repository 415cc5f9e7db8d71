//! Recognizes defaults that are evidently valid, so that a schema needn't be compiled to warn about the others.

use serde_json::Value;

/// Returns whether the defaults of the top-level properties of `schema` are evidently valid.
pub(super) fn has_evident_defaults(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else {
        return false;
    };
    members
        .iter()
        .all(|(keyword, value)| match keyword.as_str() {
            "properties" => value
                .as_object()
                .is_some_and(|named| named.values().all(has_evident_default)),
            "type" => value == "object",
            "$comment" | "additionalProperties" | "description" | "required" | "title" => true,
            _ => false,
        })
}

/// Returns whether a property has no default, or one that its `type` and `enum` allow and nothing else can forbid.
fn has_evident_default(property: &Value) -> bool {
    let Some(members) = property.as_object() else {
        return true;
    };
    let Some(default) = members.get("default") else {
        return !members.contains_key("allOf") && !members.contains_key("$ref");
    };
    members
        .iter()
        .all(|(keyword, value)| match keyword.as_str() {
            "type" => is_of_type(default, value),
            "enum" => value
                .as_array()
                .is_some_and(|items| items.contains(default)),
            "$comment" | "default" | "description" | "examples" | "title" => true,
            _ => false,
        })
}

/// Returns whether a scalar has the type that a schema names.
fn is_of_type(value: &Value, name: &Value) -> bool {
    match value {
        Value::String(_) => name == "string",
        Value::Bool(_) => name == "boolean",
        Value::Null => name == "null",
        Value::Number(number) => name == "number" || name == "integer" && !number.is_f64(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::json_schema::defaults::find_violated_defaults;

    use super::*;

    #[test]
    fn a_default_is_evident_only_if_it_is_valid() {
        let cases = [
            (json!({"type": "string", "default": "a"}), true),
            (json!({"enum": ["a", "b"], "default": "b"}), true),
            (
                json!({"type": "integer", "default": 3, "description": "How many"}),
                true,
            ),
            (json!({"type": "boolean", "default": false}), true),
            (json!({"type": "array", "items": {"default": 1}}), true),
            (json!({"type": "string", "default": 1}), false),
            (json!({"type": "integer", "default": 1.5}), false),
            (
                json!({"type": "string", "enum": ["a"], "default": "b"}),
                false,
            ),
            (
                json!({"type": "string", "minLength": 2, "default": "a"}),
                false,
            ),
            (json!({"type": ["string", "null"], "default": "a"}), false),
            (json!({"default": {}, "type": "object"}), false),
            (json!({"allOf": [{"default": 1}], "type": "string"}), false),
        ];
        for (property, is_evident) in cases {
            let schema =
                json!({"type": "object", "properties": {"p": property}, "required": ["p"]});
            assert_eq!(has_evident_defaults(&schema), is_evident, "{schema}");
            let violated = find_violated_defaults(&schema);
            assert!(!is_evident || violated.is_empty(), "{schema}");
        }
        let limited = json!({"properties": {"p": {"default": 1}}, "maxProperties": 0});
        assert!(!has_evident_defaults(&limited));
    }
}
