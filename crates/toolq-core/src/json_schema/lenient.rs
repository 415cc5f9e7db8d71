//! Leaves out of a foreign schema what can't be checked.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json::pointer_tokens;
use crate::json_schema::schema_errors::find_schema_errors;
use crate::json_schema::subschemas::SchemaError;

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
mod tests {
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
