//! What is no schema, and where that stands.

use proptest::prelude::*;
use serde_json::json;

use super::*;

use crate::json_schema::schema::Schema;

fn lines(schema: &Value) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let found = schema_faults(schema, dir.path());
    let line = |f: SchemaFault| {
        format!(
            "{}: {} ({})",
            f.pointer,
            f.message,
            f.hint.unwrap_or_default()
        )
    };
    found.into_iter().map(line).collect()
}

/// FAULTS 24–28.
#[test]
fn a_schema_that_is_none_is_named_by_place() {
    for (schema, place) in [
        (
            json!({"type": "dict"}),
            "/type: `dict` is no type of JSON Schema (did you mean `object`?)",
        ),
        (
            json!({"properties": {"a": {"type": "any"}}}),
            "/properties/a/type: `any` is no type",
        ),
        (json!({"type": ["string", "nul"]}), "/type"),
        (
            json!({"required": "path"}),
            "/required: must be array, not string",
        ),
        (
            json!({"$schema": "http://example.com/own"}),
            "/$schema: it names no draft",
        ),
        (
            json!({"properties": {"a": {"pattern": "(?=x)y"}}}),
            "/properties/a/pattern: the pattern looks around",
        ),
        (
            json!({"patternProperties": {"(a)\\1": {}}}),
            "/patternProperties/(a)\\1: the pattern refers back",
        ),
        (
            json!({"pattern": "(?:a{1000}){1000}"}),
            "/pattern: the pattern is no regular expression, or",
        ),
        (
            json!({"pattern": "("}),
            "/pattern: the pattern is no regular expression",
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/b"}}}),
            "/properties/a/$ref: `#/$defs/b` leads nowhere",
        ),
        (
            json!({"$ref": "#nowhere"}),
            "/$ref: `#nowhere` leads nowhere",
        ),
        (
            json!({"items": {"$ref": "http://example.com/x.json"}}),
            "/items/$ref: `http://example.com/x.json` is not beside",
        ),
        (
            json!({"$ref": "file:///etc/passwd"}),
            "/$ref: `file:///etc/passwd` is not beside",
        ),
        (json!({"$ref": "//example.com/x.json"}), "/$ref"),
        (json!({"$ref": "../x.json"}), "/$ref: `../x.json` leads out"),
        (
            json!({"$ref": "%2e%2e/x.json"}),
            "/$ref: `%2e%2e/x.json` leads out",
        ),
        (
            json!({"$ref": "a/../../x.json"}),
            "/$ref: `a/../../x.json` leads out",
        ),
        (json!({"$ref": "/etc/passwd"}), "/$ref"),
        (
            json!({"$ref": "missing.json"}),
            "/$ref: the file `missing.json` can't be read",
        ),
        (json!({"$id": "::::"}), ": Invalid URI"),
        (
            json!({"$ref": "http://json-schema.org/draft-07/schema#"}),
            "/$ref: `http://json-schema.org/draft-07/schema` is not beside",
        ),
        (
            json!({"$ref": "#/x/y", "x": {"y": {"pattern": "(?=a)"}}}),
            "/x/y/pattern: the pattern looks around",
        ),
        (
            json!({"$ref": "#/x/y", "x": {"y": {"type": "dict"}}}),
            "/x/y/type",
        ),
        (json!([1]), ": must be"),
    ] {
        let found = lines(&schema);
        assert_eq!(found.len(), 1, "{schema}: {found:?}");
        assert!(found[0].starts_with(place), "{schema}: {found:?}");
        assert!(Schema::compile(&schema, Path::new("/nonexistent")).is_err());
    }
}

/// FAULTS 27.
#[test]
fn references_that_multiply_are_refused() {
    let chain = |links: usize| {
        let twice = |to: usize| json!({"anyOf": [{"$ref": format!("#/$defs/{to}")}, {"$ref": format!("#/$defs/{to}")}]});
        let mut named: serde_json::Map<String, Value> =
            (0..links).map(|n| (n.to_string(), twice(n + 1))).collect();
        named.insert(links.to_string(), json!({"type": "null"}));
        json!({"$defs": named, "$ref": "#/$defs/0"})
    };
    assert_eq!(lines(&chain(12)), Vec::<String>::new());
    assert!(lines(&chain(60))[0].starts_with(": its references multiply"));
    let schema = Schema::compile(&chain(12), Path::new(".")).unwrap();
    assert_eq!(schema.details(&json!(1)).len(), 1);
}

#[test]
fn a_file_beside_tools_yaml_is_a_part() {
    let dir = tempfile::tempdir().unwrap();
    let save = |name: &str, value: Value| {
        std::fs::write(dir.path().join(name), value.to_string()).unwrap();
    };
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    save(
        "defs.json",
        json!({"$defs": {"id": {"type": "integer"}, "far": {"$ref": "sub/b.json"}}}),
    );
    save(
        "sub/b.json",
        json!({"items": {"$ref": "../defs.json#/$defs/id"}}),
    );
    save("bad.json", json!({"properties": {"a": {"type": "dict"}}}));
    save("away.json", json!({"$ref": "http://example.com/x.json"}));
    let schema = json!({"properties": {"a": {"$ref": "defs.json#/$defs/far"}}});
    assert_eq!(schema_faults(&schema, dir.path()), []);
    let compiled = Schema::compile(&schema, dir.path()).unwrap();
    assert!(compiled.accepts(&json!({"a": [1]})) && !compiled.accepts(&json!({"a": ["x"]})));
    for (name, message) in [
        (
            "bad.json",
            "in `bad.json` at `/properties/a/type`: `dict` is no type",
        ),
        ("away.json", "`http://example.com/x.json` is not beside"),
        ("sub", "the file `sub` is no regular file"),
    ] {
        let found = schema_faults(&json!({"items": {"$ref": name}}), dir.path());
        assert_eq!(found[0].pointer, "/items/$ref");
        assert!(found[0].message.starts_with(message), "{found:?}");
    }
}

#[test]
fn what_is_data_is_no_schema() {
    let schema = json!({
        "properties": {"$ref": {"type": "string"}, "pattern": {"const": {"$ref": "http://x", "pattern": "("}}},
        "default": {"$ref": "file:///x"}, "examples": [{"pattern": "("}]
    });
    assert_eq!(lines(&schema), Vec::<String>::new());
}

/// What may stand in the place of a schema or of a part of one.
fn any_schema() -> impl Strategy<Value = Value> {
    let words = [
        "",
        "#",
        "#/",
        "#/$defs/a",
        "#a",
        "a",
        "a.json#/b",
        "::",
        "http://[",
        "http://h/a",
        "urn:x:y",
        "//h",
        "..",
        "%",
        "file:///a",
        "json-schema:///a",
        "?",
        "string",
        "dict",
        "(",
        "a{9999999}",
        "\u{0}",
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ];
    let keys = [
        "$id",
        "id",
        "$ref",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "$recursiveRef",
        "$schema",
        "$defs",
        "type",
        "pattern",
        "patternProperties",
        "properties",
        "items",
        "allOf",
        "anyOf",
        "not",
        "enum",
        "a",
        "required",
        "if",
        "dependencies",
    ];
    let leaf = prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let key = prop::sample::select(keys.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|pairs| pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// FAULTS 28: whatever stands there, it is told when the file is read, and not first at a call.
    #[test]
    fn what_has_no_fault_compiles(schema in any_schema()) {
        let dir = Path::new("/nonexistent");
        let found = schema_faults(&schema, dir);
        let compiled = Schema::compile(&schema, dir);
        prop_assert_eq!(found.is_empty(), compiled.is_ok(), "{:?} {:?}", found, compiled.err());
        for fault in found {
            prop_assert!(schema.pointer(&fault.pointer).is_some(), "{:?}", fault);
        }
    }
}
