//! Looks up what a schema says about one value of the input: whether an input can have it, whether it must, and what it
//! can be.
//!
//! A name that a schema with `properties` doesn't list counts as a mistake. JSON Schema would accept it, but no model
//! would know about it. If a schema leaves names open (`additionalProperties`, `$ref`, `anyOf` …), the result is
//! unknown.

use serde_json::Value;

use crate::json_schema::PatternSyntax;
use crate::template::parse_dotted_path;
use crate::text::suggest_name;
use crate::tools_file::context::ToolContext;
use crate::tools_file::spanned::Spanned;

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

/// Returns the schema of the value at `path`, if `schema` lists it.
pub(crate) fn find_listed<'s>(schema: &'s Value, path: &[String]) -> Option<&'s Value> {
    find_presence(schema, path).listed()
}

impl<'s> SchemaPresence<'s> {
    /// Returns the schema of a value that an input can have.
    pub(crate) fn listed(&self) -> Option<&'s Value> {
        match self {
            Self::Required(schema) | Self::Optional(schema) => Some(schema),
            Self::Absent { .. } | Self::Unknown => None,
        }
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

/// Returns the names, each split at its dots. A name that no input can have is an error, with `unknown_hint` if no
/// similar name exists.
pub(crate) fn resolve_value_names<'n>(
    dotted_names: impl Iterator<Item = &'n Spanned<String>>,
    unknown_hint: &str,
    context: &mut ToolContext<'_>,
) -> Vec<Vec<String>> {
    let mut names = Vec::new();
    for dotted in dotted_names {
        let Some(path) = parse_dotted_path(&dotted.value) else {
            context.diagnostics.error(
                dotted.span,
                format!("`{}` isn't a valid name of an input", dotted.value),
                "write `path`, or `file.path` for a nested value",
            );
            continue;
        };
        // Where there is no input, the field itself is an error.
        if context.why_no_input.is_none()
            && let SchemaPresence::Absent { depth, known } = find_in_lists(context.schema, &path)
        {
            let hint = match suggest_name(&path[depth], known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => unknown_hint.to_owned(),
            };
            context.diagnostics.error(
                (dotted.span, "not in `input_schema`"),
                format!("the input has no `{}`", dotted.value),
                hint,
            );
        }
        names.push(path);
    }
    names
}

/// As [`find_presence`], where a list on the way stands for each of its elements.
fn find_in_lists<'s>(schema: &'s Value, path: &[String]) -> SchemaPresence<'s> {
    let mut found = find_presence(schema, path);
    let SchemaPresence::Absent { depth, .. } = found else {
        return found;
    };
    let (SchemaPresence::Required(list) | SchemaPresence::Optional(list)) =
        find_presence(schema, &path[..depth])
    else {
        return found;
    };
    if !allows_type(list, "array") {
        return found;
    }
    if let Some(items) = list.get("items") {
        found = find_in_lists(items, &path[depth..]);
        if let SchemaPresence::Absent { depth: total, .. } = &mut found {
            *total += depth;
        }
    } else if !allows_type(list, "object") {
        found = SchemaPresence::Unknown;
    }
    found
}

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
        let syntax = schema
            .get("pattern")
            .and_then(Value::as_str)
            .and_then(PatternSyntax::parse);
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
    use super::*;
    use serde_json::json;

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
