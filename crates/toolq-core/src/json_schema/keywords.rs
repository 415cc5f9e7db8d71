//! The keywords of all JSON Schema drafts, and a search for unknown ones. JSON Schema ignores unknown keywords, so a
//! mistyped one checks nothing.

use jsonschema::Draft;
use serde_json::Value;

use crate::json::escape_pointer_token;
use crate::json_schema::subschemas::{BASE_URI, Subschema, find_subschemas};

/// Keywords that constrain values of one type only; any other value passes.
const KEYWORDS_BY_TYPE: [(&str, &[&str]); 4] = [
    (
        "object",
        &[
            "additionalProperties",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "maxProperties",
            "minProperties",
            "patternProperties",
            "properties",
            "propertyNames",
            "required",
            "unevaluatedProperties",
        ],
    ),
    (
        "array",
        &[
            "additionalItems",
            "contains",
            "items",
            "maxContains",
            "maxItems",
            "minContains",
            "minItems",
            "prefixItems",
            "unevaluatedItems",
            "uniqueItems",
        ],
    ),
    ("string", &["maxLength", "minLength", "pattern"]),
    (
        "number",
        &[
            "exclusiveMaximum",
            "exclusiveMinimum",
            "maximum",
            "minimum",
            "multipleOf",
        ],
    ),
];
/// Keywords that constrain values of every type.
const ANY_TYPE_KEYWORDS: [&str; 13] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "else",
    "enum",
    "if",
    "not",
    "oneOf",
    "then",
    "type",
];
/// Keywords that constrain nothing by themselves.
const NON_ASSERTION_KEYWORDS: [&str; 21] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "format",
    "id",
    "readOnly",
    "title",
    "writeOnly",
];

/// Minimum length of a suggested keyword: shorter ones resemble too many words.
const MIN_FUZZY_KEYWORD_LEN: usize = 4;
/// Minimum length of a keyword for which two letters may differ.
const LONG_KEYWORD_LEN: usize = 8;

/// A key of a schema that isn't a keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKeyword {
    /// JSON pointer to the key.
    pub pointer: String,
    /// The key.
    pub key: String,
    /// The constraining keyword that was probably meant, if any.
    pub suggestion: Option<&'static str>,
}

/// Finds every key in keyword position that isn't a keyword.
pub fn find_unknown_keywords(schema: &Value) -> Vec<UnknownKeyword> {
    find_subschemas(schema, BASE_URI, Draft::default())
        .iter()
        .flat_map(unknown_keywords_at)
        .collect()
}

/// Returns the type of the values that `keyword` constrains; `None` if it isn't limited to one type.
pub fn type_of_keyword(keyword: &str) -> Option<&'static str> {
    KEYWORDS_BY_TYPE
        .iter()
        .find(|(_, keywords)| keywords.contains(&keyword))
        .map(|(name, _)| *name)
}

fn unknown_keywords_at(subschema: &Subschema<'_>) -> Vec<UnknownKeyword> {
    let keys = subschema.schema.keys().filter(|key| !is_keyword(key));
    let to_unknown = |key: &String| UnknownKeyword {
        pointer: format!("{}/{}", subschema.pointer, escape_pointer_token(key)),
        key: key.clone(),
        suggestion: suggest_keyword(key),
    };
    keys.map(to_unknown).collect()
}

fn is_keyword(key: &str) -> bool {
    type_of_keyword(key).is_some()
        || ANY_TYPE_KEYWORDS.contains(&key)
        || NON_ASSERTION_KEYWORDS.contains(&key)
}

/// Returns the constraining keyword that differs from `key` only by case or by a letter or two. Anything less similar
/// is assumed to be a vendor's own key (`propertyOrdering`, `nullable`).
fn suggest_keyword(key: &str) -> Option<&'static str> {
    let lower = key.to_lowercase();
    let constraining = KEYWORDS_BY_TYPE
        .iter()
        .flat_map(|(_, keywords)| keywords.iter());
    constraining
        .chain(&ANY_TYPE_KEYWORDS)
        .copied()
        .filter(|keyword| keyword.len() >= MIN_FUZZY_KEYWORD_LEN)
        .map(|keyword| {
            (
                strsim::osa_distance(&lower, &keyword.to_lowercase()),
                keyword,
            )
        })
        .filter(|(distance, keyword)| {
            *distance
                <= if keyword.len() < LONG_KEYWORD_LEN {
                    1
                } else {
                    2
                }
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, keyword)| keyword)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the keywords of all drafts.
    pub(crate) fn all_keywords() -> impl Iterator<Item = &'static str> {
        let of_types = KEYWORDS_BY_TYPE.iter().flat_map(|(_, keywords)| *keywords);
        let any = ANY_TYPE_KEYWORDS.iter().chain(&NON_ASSERTION_KEYWORDS);
        of_types.chain(any).copied()
    }

    fn list_unknown_keywords(schema: &Value) -> Vec<String> {
        let shown = |unknown: UnknownKeyword| {
            format!("{} {}", unknown.pointer, unknown.suggestion.unwrap_or("-"))
        };
        find_unknown_keywords(schema)
            .into_iter()
            .map(shown)
            .collect()
    }

    #[test]
    fn unknown_keywords_are_found_at_their_position() {
        let schema = json!({
            "propertys": {"a": {"minLenght": 1}},
            "properties": {
                "pattern": {"type": "string", "minLenght": 1, "default": {"requird": 1}},
                "b": {"x-order": 1, "nullable": true, "propertyOrdering": [], "example": 1, "tpye": "x"},
            },
            "requird": ["a"],
            "anyOf": [{"Maximum": 1}],
        });
        let mut found = list_unknown_keywords(&schema);
        found.sort();
        assert_eq!(
            found,
            [
                "/anyOf/0/Maximum maximum",
                "/properties/b/example -",
                "/properties/b/nullable -",
                "/properties/b/propertyOrdering -",
                "/properties/b/tpye type",
                "/properties/b/x-order -",
                "/properties/pattern/minLenght minLength",
                "/propertys properties",
                "/requird required",
            ]
        );
    }
}
