//! The keywords of JSON Schema, all drafts together, and those of a schema that are none of them: JSON Schema takes these
//! for notes, so that a mistyped one checks nothing.

use std::path::Path;

use serde_json::Value;

use crate::json_schema::library::{BASE, Library};
use crate::json_schema::walk::{Place, escaped, places};

/// Keywords that say something about values of one type only; any other value passes.
const OF_TYPE: [(&str, &[&str]); 4] = [
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
/// Keywords that decide for values of every type.
const OF_ALL: [&str; 13] = [
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
/// Keywords that decide nothing by themselves.
const SILENT: [&str; 21] = [
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

/// Shorter keywords are like too many words.
const MIN_LIKE: usize = 4;
/// From this length on, two letters may differ.
const LONG: usize = 8;

/// A key of a schema that is no keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// JSON pointer to it; where it stands in a file, to the reference that led there.
    pub pointer: String,
    /// The key.
    pub key: String,
    /// The keyword that it was probably meant to be, if that one would decide something.
    pub meant: Option<&'static str>,
}

/// Every key in `schema` and the files that it reaches in `dir` that stands where a keyword does and is none.
pub fn strays(schema: &Value, dir: &Path) -> Vec<Stray> {
    let mut found: Vec<Stray> = places(schema, BASE).iter().flat_map(of_place).collect();
    let (library, _) = Library::of(schema, dir);
    for (address, file) in &library.files {
        for stray in places(&file.value, address).iter().flat_map(of_place) {
            let pointer = file.from.clone();
            found.push(Stray { pointer, ..stray });
        }
    }
    found
}

/// The type of the values that `keyword` says something about; none where it is all of them.
pub fn type_of(keyword: &str) -> Option<&'static str> {
    OF_TYPE
        .iter()
        .find(|(_, keywords)| keywords.contains(&keyword))
        .map(|(name, _)| *name)
}

fn of_place(place: &Place<'_>) -> Vec<Stray> {
    let keys = place.schema.keys().filter(|key| !is_keyword(key));
    let stray = |key: &String| Stray {
        pointer: format!("{}/{}", place.pointer, escaped(key)),
        key: key.clone(),
        meant: meant(key),
    };
    keys.map(stray).collect()
}

fn is_keyword(key: &str) -> bool {
    type_of(key).is_some() || OF_ALL.contains(&key) || SILENT.contains(&key)
}

/// The deciding keyword that differs from `key` by its case or a letter or two. Vendors have keys of their own
/// (`propertyOrdering`, `nullable`): what is only alike is taken for one of them.
fn meant(key: &str) -> Option<&'static str> {
    let lower = key.to_lowercase();
    let deciding = OF_TYPE.iter().flat_map(|(_, keywords)| keywords.iter());
    deciding
        .chain(&OF_ALL)
        .copied()
        .filter(|keyword| keyword.len() >= MIN_LIKE)
        .map(|keyword| {
            (
                strsim::osa_distance(&lower, &keyword.to_lowercase()),
                keyword,
            )
        })
        .filter(|(distance, keyword)| *distance <= if keyword.len() < LONG { 1 } else { 2 })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, keyword)| keyword)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value) -> Vec<String> {
        let shown = |stray: Stray| format!("{} {}", stray.pointer, stray.meant.unwrap_or("-"));
        strays(schema, Path::new("/"))
            .into_iter()
            .map(shown)
            .collect()
    }

    #[test]
    fn what_is_no_keyword_is_found_where_it_stands() {
        let schema = json!({
            "propertys": {"a": {"minLenght": 1}},
            "properties": {
                "pattern": {"type": "string", "minLenght": 1, "default": {"requird": 1}},
                "b": {"x-order": 1, "nullable": true, "propertyOrdering": [], "example": 1, "tpye": "x"},
            },
            "requird": ["a"],
            "anyOf": [{"Maximum": 1}],
        });
        let mut found = found(&schema);
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
