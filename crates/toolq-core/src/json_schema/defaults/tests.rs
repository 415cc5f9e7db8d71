use serde_json::json;

use super::*;
use crate::json_schema::CompiledSchema;

/// Returns the text of `input` with the defaults of `schema`.
fn fill(schema: &Value, input: &str) -> String {
    let schema = CompiledSchema::compile(schema).unwrap();
    let input = Input::parse(input).unwrap();
    schema
        .fill_defaults(&input)
        .unwrap()
        .input
        .text()
        .to_owned()
}

#[test]
fn missing_values_get_their_default() {
    let schema = json!({
        "properties": {
            "n": {"type": "integer", "default": 5},
            "text": {"default": "a\"b"},
            "none": {"type": "string"},
            "opts": {"properties": {"deep": {"default": [1]}}},
        },
    });
    for (input, filled) in [
        ("{}", r#"{"n":5,"text":"a\"b"}"#),
        (
            r#"{ "n" : 12345678901234567890123 }"#,
            r#"{ "n" : 12345678901234567890123 ,"text":"a\"b"}"#,
        ),
        (
            r#"{"n":null,"text":"","opts":{}}"#,
            r#"{"n":null,"text":"","opts":{"deep":[1]}}"#,
        ),
        (
            r#"{"n":1,"text":"x","opts":{"deep":2}}"#,
            r#"{"n":1,"text":"x","opts":{"deep":2}}"#,
        ),
        (
            r#"{"\u006e":1,"text":"x","opts":3}"#,
            r#"{"\u006e":1,"text":"x","opts":3}"#,
        ),
    ] {
        assert_eq!(fill(&schema, input), filled);
    }
}

/// A schema that is an input stays as it came: with the `"not": true` of a meta-schema, it would accept nothing.
#[test]
fn defaults_of_a_meta_schema_are_not_filled_in() {
    for meta_schema in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let schema = json!({"properties": {"x": {"$ref": meta_schema}, "n": {"default": 1}}});
        for (input, filled) in [
            ("{}", r#"{"n":1}"#),
            (
                r#"{"x":{"type":"string"}}"#,
                r#"{"x":{"type":"string"},"n":1}"#,
            ),
        ] {
            assert_eq!(fill(&schema, input), filled, "{meta_schema}");
        }
        let same_draft =
            json!({"$schema": meta_schema, "properties": {"x": {"$ref": meta_schema}}});
        assert_eq!(fill(&same_draft, r#"{"x":{}}"#), r#"{"x":{}}"#);
    }
}

#[test]
fn defaults_are_found_through_items_all_of_and_references() {
    let schema = json!({
        "allOf": [
            {"properties": {"a": {"default": 1}, "b": {"default": "first"}}},
            {"$ref": "#/$defs/more"},
        ],
        "properties": {
            "list": {"items": {"$ref": "#/$defs/row"}},
            "row": {"$ref": "#/$defs/row", "default": {}},
            "named": {"$ref": "#/$defs/named"},
            "anchored": {"$ref": "#place"},
            "escaped": {"$ref": "#/$defs/a~1b%20%25"},
        },
        "$defs": {
            "more": {"properties": {"b": {"default": "second"}, "c": {"default": null}}},
            "row": {"properties": {"id": {"default": 0}}},
            "named": {"default": "from the reference"},
            "anchored": {"$anchor": "place", "default": 3},
            "a/b %": {"properties": {"escaped": {"default": true}}},
        },
    });
    assert_eq!(
        fill(&schema, r#"{"list":[{},{"id":7},3],"escaped":{}}"#),
        r#"{"list":[{"id":0},{"id":7},3],"escaped":{"escaped":true},"row":{"id":0},"named":"from the reference","anchored":3,"a":1,"b":"first","c":null}"#
    );
    let tuple = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"pair": {"items": [{}, {"properties": {"x": {"default": 1}}}]}},
    });
    assert_eq!(
        fill(&tuple, r#"{"pair":[{},{},{}]}"#),
        r#"{"pair":[{},{"x":1},{}]}"#
    );
    let rest = json!({"properties": {"list": {
        "prefixItems": [{"properties": {"x": {"default": 1}}}],
        "items": {"properties": {"x": {"default": 2}}},
    }}});
    assert_eq!(
        fill(&rest, r#"{"list":[{},{}]}"#),
        r#"{"list":[{},{"x":2}]}"#
    );
}

/// Whether such a schema applies isn't known before validation.
#[test]
fn nothing_is_filled_in_below_alternatives() {
    let with_default = json!({"properties": {"a": {"default": 1}}});
    for schema in [
        json!({"anyOf": [with_default]}),
        json!({"oneOf": [with_default]}),
        json!({"not": {"not": with_default}}),
        json!({"if": with_default, "then": with_default, "else": with_default}),
        json!({"allOf": [{"anyOf": [with_default]}]}),
        json!({"dependentSchemas": {"x": with_default}}),
        json!({"properties": {"x": {"anyOf": [{"default": 1}]}}}),
        json!({"$defs": {"x": with_default}, "default": {"a": 1}}),
        json!({"properties": {"x": {"const": {"default": 1}}}}),
    ] {
        assert_eq!(fill(&schema, r#"{"y":1}"#), r#"{"y":1}"#, "{schema}");
    }
}

/// Before draft 2019-09, only the target of a `$ref` applies.
#[test]
fn keywords_next_to_a_reference_follow_the_draft() {
    let schema = |draft: &str| {
        json!({
            "$schema": draft,
            "properties": {"a": {"$ref": "#/definitions/x", "properties": {"p": {"default": 1}}, "default": {}}},
            "definitions": {"x": {"properties": {"q": {"default": 2}}}},
        })
    };
    let draft7 = schema("http://json-schema.org/draft-07/schema#");
    assert_eq!(fill(&draft7, "{}"), r#"{"a":{"q":2}}"#);
    let draft2020 = schema("https://json-schema.org/draft/2020-12/schema");
    assert_eq!(fill(&draft2020, "{}"), r#"{"a":{"p":1,"q":2}}"#);
}

#[test]
fn defaults_that_contain_themselves_end() {
    let own = json!({"properties": {"a": {"$ref": "#", "default": {}}}});
    assert_eq!(fill(&own, "{}"), r#"{"a":{}}"#);
    // Each level doubles the next: 2^20 values.
    let mut defs = Map::new();
    for level in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1), "default": {}});
        defs.insert(
            format!("d{level}"),
            json!({"properties": {"x": next, "y": next}}),
        );
    }
    defs.insert("d20".to_owned(), json!({}));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
    let schema = CompiledSchema::compile(&schema).unwrap();
    let filled = schema.fill_defaults(&Input::empty());
    assert!(matches!(filled, Err(InvalidInput::TooLarge(_))));
}

/// Long defaults of many elements are refused while they are filled in, and not only once they are all there.
#[test]
fn long_defaults_are_refused_before_they_take_memory() {
    let item = json!({"properties": {"text": {"default": "x".repeat(100_000)}}});
    let schema = json!({"properties": {"list": {"items": item}}});
    let input = format!(r#"{{"list":[{}{{}}]}}"#, "{},".repeat(49_999));
    let filled = fill_defaults(&schema, &Input::parse(&input).unwrap());
    let Err(InvalidInput::TooLarge(why)) = filled else {
        panic!("5 GB of defaults were filled in");
    };
    assert_eq!(
        why,
        "has more than 8388608 bytes with the defaults of its schema"
    );
}

/// An input that is valid as it came runs. A default that only clashes with other values takes the rest with it.
#[test]
fn defaults_never_make_a_valid_input_invalid() {
    let schema = json!({
        "properties": {
            "n": {"type": "integer", "default": []},
            "ok": {"type": "integer", "default": 5},
            "default": {"type": "string", "default": null},
            "exclusive": {"enum": [true, false]},
            "outer": {"default": {}, "properties": {"inner": {"type": "string", "default": 1}}},
        },
        "required": ["id"],
    });
    let clashing = json!({
        "properties": {"ok": {"default": 5}, "exclusive": {"default": false}},
        "dependentRequired": {"exclusive": ["n"]},
    });
    for (schema, input, filled) in [
        (&schema, r#"{"id":1}"#, r#"{"id":1,"ok":5,"outer":{}}"#),
        (
            &schema,
            r#"{"id":1,"n":2}"#,
            r#"{"id":1,"n":2,"ok":5,"outer":{}}"#,
        ),
        (
            &schema,
            r#"{"id":1,"ok":1,"outer":{"inner":""}}"#,
            r#"{"id":1,"ok":1,"outer":{"inner":""}}"#,
        ),
        (&schema, "{}", r#"{"ok":5,"outer":{}}"#),
        (&clashing, "{}", "{}"),
        (
            &clashing,
            r#"{"n":1}"#,
            r#"{"n":1,"ok":5,"exclusive":false}"#,
        ),
    ] {
        assert_eq!(fill(schema, input), filled, "{input}");
    }
}

/// The keyword is meant, not a property of that name.
#[test]
fn invalid_defaults_are_found_by_their_place() {
    let schema = json!({
        "properties": {
            "default": {"type": "string", "default": null},
            "list": {"items": {"minimum": 1, "default": 0}},
            "ok": {"type": "string", "default": ""},
            "refers": {"$ref": "#/$defs/int", "default": "x"},
            "below": {"type": "object", "properties": {"n": {"$ref": "#/$defs/int"}}, "default": 1},
            "fits": {"$ref": "#/$defs/int", "default": 1},
        },
        "$defs": {"int": {"type": "integer"}},
    });
    let found = find_invalid_defaults(&schema).into_iter();
    let mut places: Vec<String> = found.map(|(pointer, _)| pointer).collect();
    places.sort();
    assert_eq!(
        places,
        [
            "/properties/below",
            "/properties/default",
            "/properties/list/items",
            "/properties/refers"
        ]
    );
}

/// Below an `$id`, `#` is another schema.
#[test]
fn references_among_embedded_schemas_are_not_followed() {
    let schema = json!({
        "properties": {"x": {
            "$id": "https://example.org/x",
            "properties": {"y": {"$ref": "#/$defs/y"}},
            "$defs": {"y": {"default": 5}},
        }},
        "$defs": {"y": {"default": 7}},
    });
    assert_eq!(fill(&schema, r#"{"x":{}}"#), r#"{"x":{}}"#);
}

/// A schema with definitions of its own would have to be compiled otherwise.
#[test]
fn definitions_alone_are_no_defaults() {
    for (schema, may) in [
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
            false,
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"default": 1}}}),
            true,
        ),
    ] {
        assert_eq!(may_have_defaults(&schema), may, "{schema}");
    }
}
