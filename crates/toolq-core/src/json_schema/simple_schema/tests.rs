use proptest::prelude::*;
use serde_json::{Map, json};

use crate::json_schema::library::SchemaLibrary;
use crate::json_schema::schema_errors::find_errors_by_meta_schema;
use crate::json_schema::validation_options::validation_options;
use crate::json_schema::{CompiledSchema, find_unknown_keywords};
use crate::types::FormatPolicy;

use super::*;

#[test]
fn schemas_of_tools_are_simple() {
    assert!(is_simple_schema(&json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "pattern": "^[a-z]+-[0-9]{1,6}$"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 2},
            "mode": {"enum": ["text", "outline"], "default": "text", "description": "How"},
            "note": {"type": ["string", "null"]},
        },
        "required": ["id"],
        "additionalProperties": false,
    })));
}

/// Keywords and values, right and wrong ones.
fn arbitrary_schema() -> impl Strategy<Value = Value> {
    let keywords = [
        "type",
        "pattern",
        "required",
        "enum",
        "const",
        "default",
        "minLength",
        "maxItems",
        "minimum",
        "uniqueItems",
        "format",
        "title",
        "examples",
        "properties",
        "items",
        "allOf",
        "prefixItems",
        "not",
        "if",
        "additionalProperties",
        "$ref",
        "$id",
        "id",
        "$schema",
        "maxLenght",
        "multipleOf",
        "minContains",
    ];
    let leaf = prop_oneof![
        prop::sample::select(vec!["string", "object", "a", "^a+$", "(", "#", "date"])
            .prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-1_i64..3).prop_map(Value::from),
        Just(json!(1.5)),
        Just(Value::Null),
        Just(json!(["a", "b"])),
        Just(json!(["string", "null"])),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let keyword = prop::sample::select(keywords.to_vec());
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::vec((keyword, inner), 0..4).prop_map(|pairs| {
                let pairs = pairs.into_iter();
                let members = pairs.map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect::<Map<_, _>>())
            }),
        ]
    })
}

fn arbitrary_input() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!("a"),
        json!("aa"),
        json!(1),
        json!(1.0),
        json!(-1.5),
        json!(null),
        json!(true),
        json!([]),
        json!(["a", "a"]),
        json!([1, 1.0]),
        json!({}),
        json!({"type": "a"}),
        json!({"a": 1, "b": null}),
        json!({"const": ["string", "null"]}),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is taken for simple need not be looked at in any other way.
    #[test]
    fn nothing_is_wrong_with_a_simple_schema(schema in arbitrary_schema(), input in arbitrary_input()) {
        if is_simple_schema(&schema) {
            let found = find_errors_by_meta_schema(&schema);
            prop_assert!(found.is_empty(), "{:?}", found);
            let compiled = CompiledSchema::compile(&schema).unwrap();
            let options = validation_options(SchemaLibrary::default(), FormatPolicy::Annotate);
            let newest_draft = options.build(&schema).unwrap();
            prop_assert_eq!(compiled.accepts(&input), newest_draft.is_valid(&input));
            prop_assert_eq!(find_unknown_keywords(&schema), []);
        }
    }
}
