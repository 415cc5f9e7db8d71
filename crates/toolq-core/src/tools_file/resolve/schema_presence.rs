//! Looks up what a schema says about one value of the input: whether an input can have it, and whether it must.
//!
//! A name that a schema with `properties` doesn't list counts as a mistake. JSON Schema would accept it, but no model
//! would know about it. If a schema leaves names open (`additionalProperties`, `$ref`, `anyOf` …), the result is
//! unknown.

use serde_json::Value;

/// Keywords that may declare names elsewhere.
const INDIRECT_KEYWORDS: [&str; 11] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// What a schema says about a value.
#[derive(Debug, PartialEq)]
pub(crate) enum SchemaPresence<'s> {
    /// No input can have it.
    Absent {
        /// Number of names at the start of the path that can exist.
        depth: usize,
        /// The names that the schema lists instead of the next one.
        known: Vec<&'s str>,
    },
    /// An input may lack it.
    Optional(&'s Value),
    /// Every input has it, at least by its default.
    Required(&'s Value),
    /// The schema leaves it open.
    Unknown,
}

/// Returns what `schema` says about the value at `path`.
pub(crate) fn find_presence<'s>(schema: &'s Value, path: &[String]) -> SchemaPresence<'s> {
    let mut current = schema;
    let mut all_required = true;
    for (depth, name) in path.iter().enumerate() {
        let property = current.get("properties").and_then(|all| all.get(name));
        let Some(property) = property else {
            return presence_of_unlisted(current, depth);
        };
        all_required &= is_required(current, name) || property.get("default").is_some();
        current = property;
    }
    if all_required {
        SchemaPresence::Required(current)
    } else {
        SchemaPresence::Optional(current)
    }
}

fn presence_of_unlisted(schema: &Value, depth: usize) -> SchemaPresence<'_> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_closed = |keyword| schema.get(keyword) == Some(&Value::Bool(false));
    let is_open = |keyword| schema.get(keyword).is_some() && !is_closed(keyword);
    let is_absent = !allows_type(schema, "object")
        || is_closed("additionalProperties")
        || is_closed("unevaluatedProperties")
        || properties.is_some();
    let is_unknown = INDIRECT_KEYWORDS
        .iter()
        .any(|keyword| schema.get(keyword).is_some())
        || is_open("additionalProperties")
        || is_open("unevaluatedProperties");
    if is_unknown || !is_absent {
        return SchemaPresence::Unknown;
    }
    let known = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    SchemaPresence::Absent {
        depth,
        known: known.collect(),
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Whether the schema's `type` accepts a value of `kind`.
pub(crate) fn allows_type(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|other| other == kind),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn describe_presence(schema: &Value, dotted: &str) -> String {
        let path: Vec<String> = dotted.split('.').map(str::to_owned).collect();
        match find_presence(schema, &path) {
            SchemaPresence::Absent { depth, known } => {
                format!("absent at {depth}, known {known:?}")
            }
            SchemaPresence::Optional(_) => "optional".to_owned(),
            SchemaPresence::Required(_) => "required".to_owned(),
            SchemaPresence::Unknown => "unknown".to_owned(),
        }
    }

    #[test]
    fn presence_follows_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"b": {}, "c": {}}, "required": ["b"]},
                "s": {"type": "string"},
                "any": {},
                "ref": {"$ref": "#/$defs/x"},
                "filled": {"type": "integer", "default": 5},
            },
            "required": ["a"],
        });
        for (dotted, expected) in [
            ("a", "required"),
            ("a.b", "required"),
            ("a.c", "optional"),
            ("a.d", r#"absent at 1, known ["b", "c"]"#),
            ("s", "optional"),
            ("filled", "required"),
            ("s.x", "absent at 1, known []"),
            (
                "x",
                r#"absent at 0, known ["a", "s", "any", "ref", "filled"]"#,
            ),
            ("any.x", "unknown"),
            ("ref.x.y", "unknown"),
        ] {
            assert_eq!(describe_presence(&schema, dotted), expected, "{dotted}");
        }
        for (schema, expected) in [
            (json!({"type": "object"}), "unknown"),
            (
                json!({"properties": {}, "additionalProperties": true}),
                "unknown",
            ),
            (json!({"properties": {}, "anyOf": [{}]}), "unknown"),
            (
                json!({"additionalProperties": false}),
                "absent at 0, known []",
            ),
            (json!(true), "unknown"),
        ] {
            assert_eq!(describe_presence(&schema, "x"), expected, "{schema}");
        }
    }
}
