//! What a schema says of one value of the input: whether an input can have it, and whether it must.
//!
//! A name that a schema with `properties` doesn't list counts as a mistake, although JSON Schema would let it pass: no
//! model is told of it. Where a schema leaves names open (`additionalProperties`, `$ref`, `anyOf` …), nothing is claimed.

use serde_json::Value;

/// Keywords that may declare names elsewhere.
const ELSEWHERE: [&str; 11] = [
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

/// What is known of a value.
#[derive(Debug, PartialEq)]
pub(crate) enum Declared<'s> {
    /// No input can have it.
    Never {
        /// How much of the path there is.
        depth: usize,
        /// The names in its place.
        known: Vec<&'s str>,
    },
    /// An input may lack it.
    Optional(&'s Value),
    /// Every input has it.
    Always(&'s Value),
    /// The schema leaves it open.
    Open,
}

/// What `schema` says of the value at `path`.
pub(crate) fn declared<'s>(schema: &'s Value, path: &[String]) -> Declared<'s> {
    let mut here = schema;
    let mut always = true;
    for (depth, name) in path.iter().enumerate() {
        let property = here.get("properties").and_then(|all| all.get(name));
        let Some(property) = property else {
            return unlisted(here, depth);
        };
        always &= requires(here, name);
        here = property;
    }
    if always {
        Declared::Always(here)
    } else {
        Declared::Optional(here)
    }
}

fn unlisted(schema: &Value, depth: usize) -> Declared<'_> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_closed = |keyword| schema.get(keyword) == Some(&Value::Bool(false));
    let is_open = |keyword| schema.get(keyword).is_some() && !is_closed(keyword);
    let never = !may_be(schema, "object")
        || is_closed("additionalProperties")
        || is_closed("unevaluatedProperties")
        || properties.is_some();
    let open = ELSEWHERE
        .iter()
        .any(|keyword| schema.get(keyword).is_some())
        || is_open("additionalProperties")
        || is_open("unevaluatedProperties");
    if open || !never {
        return Declared::Open;
    }
    let known = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    Declared::Never {
        depth,
        known: known.collect(),
    }
}

fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Whether the schema's `type` lets a value of `kind` pass.
pub(crate) fn may_be(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|other| other == kind),
        _ => true,
    }
}

/// Whether a string that begins with `-` may pass: neither type nor fixed values nor the pattern's beginning are against
/// it.
pub(crate) fn may_begin_with_dash(schema: &Value) -> bool {
    let dashed = |value: &Value| value.as_str().is_some_and(|text| text.starts_with('-'));
    let pattern = schema.get("pattern").and_then(Value::as_str);
    may_be(schema, "string")
        && schema.get("const").is_none_or(dashed)
        && match schema.get("enum") {
            Some(Value::Array(all)) => all.iter().any(dashed),
            _ => true,
        }
        && pattern.is_none_or(may_match_dash)
}

/// Whether a pattern may match a text that begins with `-`; only `^a…` and `^[a-z…]…` are known not to.
fn may_match_dash(pattern: &str) -> bool {
    let Some(rest) = pattern.strip_prefix('^').filter(|rest| !rest.contains('|')) else {
        return true;
    };
    let (first, behind) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(class) => class,
        None => rest.split_at(rest.chars().next().map_or(0, char::len_utf8)),
    };
    let lets_dash = first.ends_with('-') || first.contains("\\-");
    !first.starts_with(char::is_alphanumeric) || lets_dash || behind.starts_with(['*', '?', '{'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: &Value, dotted: &str) -> String {
        let path: Vec<String> = dotted.split('.').map(str::to_owned).collect();
        match declared(schema, &path) {
            Declared::Never { depth, known } => format!("never at {depth}, known {known:?}"),
            Declared::Optional(_) => "optional".to_owned(),
            Declared::Always(_) => "always".to_owned(),
            Declared::Open => "open".to_owned(),
        }
    }

    #[test]
    fn what_a_schema_says_of_a_value() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"b": {}, "c": {}}, "required": ["b"]},
                "s": {"type": "string"},
                "any": {},
                "ref": {"$ref": "#/$defs/x"},
            },
            "required": ["a"],
        });
        for (dotted, expected) in [
            ("a", "always"),
            ("a.b", "always"),
            ("a.c", "optional"),
            ("a.d", r#"never at 1, known ["b", "c"]"#),
            ("s", "optional"),
            ("s.x", "never at 1, known []"),
            ("x", r#"never at 0, known ["a", "s", "any", "ref"]"#),
            ("any.x", "open"),
            ("ref.x.y", "open"),
        ] {
            assert_eq!(of(&schema, dotted), expected, "{dotted}");
        }
        for (schema, expected) in [
            (json!({"type": "object"}), "open"),
            (
                json!({"properties": {}, "additionalProperties": true}),
                "open",
            ),
            (json!({"properties": {}, "anyOf": [{}]}), "open"),
            (
                json!({"additionalProperties": false}),
                "never at 0, known []",
            ),
            (json!(true), "open"),
        ] {
            assert_eq!(of(&schema, "x"), expected, "{schema}");
        }
    }

    #[test]
    fn a_dash_may_come_first_unless_the_schema_is_against_it() {
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
            assert_eq!(may_begin_with_dash(&schema), may, "{schema}");
        }
    }
}
