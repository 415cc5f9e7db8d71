//! Looks up what a schema says about one value of the input: whether an input can have it, and whether it must.
//!
//! A name that a schema with `properties` doesn't list counts as a mistake. JSON Schema would accept it, but no model
//! learns about it. If a schema leaves names open (`additionalProperties`, `$ref`, `anyOf` …), the result is unknown.

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

/// Whether a schema accepts a string that begins with `-`, judging by its `type`, its fixed values and the start of its
/// `pattern`.
pub(crate) fn may_start_with_dash(schema: &Value) -> bool {
    let starts_with_dash = |value: &Value| value.as_str().is_some_and(|text| text.starts_with('-'));
    let pattern = schema.get("pattern").and_then(Value::as_str);
    allows_type(schema, "string")
        && schema.get("const").is_none_or(starts_with_dash)
        && match schema.get("enum") {
            Some(Value::Array(all)) => all.iter().any(starts_with_dash),
            _ => true,
        }
        && pattern.is_none_or(pattern_may_match_dash)
}

/// Whether a pattern may match a text that begins with `-`. Only `^a…` and `^[a-z…]…` are known not to.
fn pattern_may_match_dash(pattern: &str) -> bool {
    let Some(rest) = pattern.strip_prefix('^').filter(|rest| !rest.contains('|')) else {
        return true;
    };
    let (first, after) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(class) => class,
        None => rest.split_at(rest.chars().next().map_or(0, char::len_utf8)),
    };
    let allows_dash = first.ends_with('-') || first.contains("\\-");
    !first.starts_with(char::is_alphanumeric) || allows_dash || after.starts_with(['*', '?', '{'])
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

    #[test]
    fn a_leading_dash_is_possible_unless_the_schema_excludes_it() {
        for (schema, may) in [
            (json!({}), true),
            (json!({"type": "string"}), true),
            (json!({"type": ["string", "null"]}), true),
            (json!({"type": "integer"}), false),
            (json!({"enum": ["a", "b"]}), false),
            (json!({"enum": ["a", "-b"]}), true),
            (json!({"const": "a"}), false),
            (json!({"pattern": "^[a-z]+$"}), false),
            (json!({"pattern": "^[a-z-]+$"}), true),
            (json!({"pattern": "^[a-z]*-"}), true),
            (json!({"pattern": "^a|b"}), true),
            (json!({"pattern": "^v[0-9]"}), false),
            (json!({"pattern": "x"}), true),
        ] {
            assert_eq!(may_start_with_dash(&schema), may, "{schema}");
        }
    }
}
