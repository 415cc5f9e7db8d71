//! Schemas that can't be used, and where their errors are reported.

use proptest::prelude::*;
use serde_json::json;

use super::*;

use crate::json_schema::keywords::tests::all_keywords;
use crate::json_schema::patterns::with_short_patterns;
use crate::json_schema::schema::CompiledSchema;

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

fn error_lines(schema: &Value) -> Vec<String> {
    let found = find_schema_errors(schema);
    let line = |f: SchemaError| {
        format!(
            "{}: {} ({})",
            f.pointer,
            f.message,
            f.hint.unwrap_or_default()
        )
    };
    found.into_iter().map(line).collect()
}

/// A wrong value of any keyword, a huge pattern such as `(?:a{1000}){1000}`, a `$ref` to a URL or to a file elsewhere,
/// which is never fetched.
#[test]
fn invalid_schemas_are_reported_at_their_position() {
    for (schema, place) in [
        (
            json!({"type": "dict"}),
            "/type: `dict` is not a JSON Schema type (did you mean `object`?)",
        ),
        (
            json!({"properties": {"a": {"type": "any"}}}),
            "/properties/a/type: `any` is not a JSON Schema type",
        ),
        (json!({"type": ["string", "nul"]}), "/type"),
        (
            json!({"required": "path"}),
            "/required: must be array, not string",
        ),
        (
            json!({"$schema": "http://example.com/own"}),
            "/$schema: it isn't a JSON Schema draft",
        ),
        (
            json!({"properties": {"a": {"pattern": "(?=x)y"}}}),
            "/properties/a/pattern: the pattern uses look-around",
        ),
        (
            json!({"patternProperties": {"(a)\\1": {}}}),
            "/patternProperties/(a)\\1: the pattern uses a backreference",
        ),
        (
            json!({"pattern": "(?:a{1000}){1000}"}),
            "/pattern: the pattern is not a valid regular expression, or",
        ),
        (
            json!({"pattern": "("}),
            "/pattern: the pattern is not a valid regular expression",
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/b"}}}),
            "/properties/a/$ref: `#/$defs/b` doesn't resolve",
        ),
        (
            json!({"$ref": "#nowhere"}),
            "/$ref: `#nowhere` doesn't resolve",
        ),
        (
            json!({"items": {"$ref": "http://example.com/x.json"}}),
            "/items/$ref: `http://example.com/x.json` leads out of the schema",
        ),
        (
            json!({"$ref": "file:///etc/passwd"}),
            "/$ref: `file:///etc/passwd` leads out of the schema",
        ),
        (json!({"$ref": "//example.com/x.json"}), "/$ref"),
        (
            json!({"$ref": "x.json#/a"}),
            "/$ref: `x.json#/a` leads out of the schema; references are never fetched (copy what",
        ),
        (json!({"$ref": "/etc/passwd"}), "/$ref"),
        (
            json!({"$id": "https://example.com/v1/a.json", "items": {"$ref": "b.json"}}),
            "/items/$ref: `b.json` leads out of the schema",
        ),
        (json!({"$id": "::::"}), ": Invalid URI"),
        (
            json!({"$ref": "http://json-schema.org/draft-03/schema#"}),
            "/$ref: `http://json-schema.org/draft-03/schema#` leads out of the schema",
        ),
        (
            json!({"$ref": "#/x/y", "x": {"y": {"pattern": "(?=a)"}}}),
            "/x/y/pattern: the pattern uses look-around",
        ),
        (
            json!({"$ref": "#/x/y", "x": {"y": {"type": "dict"}}}),
            "/x/y/type",
        ),
        (json!([1]), ": must be"),
    ] {
        let found = error_lines(&schema);
        assert_eq!(found.len(), 1, "{schema}: {found:?}");
        assert!(found[0].starts_with(place), "{schema}: {found:?}");
        assert!(CompiledSchema::compile(&schema).is_err());
    }
}

/// References that multiply are an error of the file, before any input is checked.
#[test]
fn exponential_references_are_rejected() {
    let chain = |links: usize| {
        let twice = |to: usize| json!({"anyOf": [{"$ref": format!("#/$defs/{to}")}, {"$ref": format!("#/$defs/{to}")}]});
        let mut named: Map<String, Value> =
            (0..links).map(|n| (n.to_string(), twice(n + 1))).collect();
        named.insert(links.to_string(), json!({"type": "null"}));
        json!({"$defs": named, "$ref": "#/$defs/0"})
    };
    assert_eq!(error_lines(&chain(12)), Vec::<String>::new());
    assert!(error_lines(&chain(60))[0].starts_with(": its references multiply"));
    let schema = CompiledSchema::compile(&chain(12)).unwrap();
    assert_eq!(schema.problem_details(&json!(1)).len(), 1);
}

#[test]
fn a_schema_may_refer_to_the_meta_schema_of_its_draft() {
    for (draft, meta_schema) in [
        ("draft-04", "http://json-schema.org/draft-04/schema#"),
        ("draft-06", "http://json-schema.org/draft-06/schema#"),
        ("draft-07", "http://json-schema.org/draft-07/schema#"),
        ("2019-09", "https://json-schema.org/draft/2019-09/schema"),
        ("2020-12", "https://json-schema.org/draft/2020-12/schema"),
    ] {
        let schema = json!({"$schema": meta_schema, "properties": {"a": {"$ref": meta_schema}}});
        assert_eq!(error_lines(&schema), Vec::<String>::new(), "{draft}");
        let compiled = CompiledSchema::compile(&schema).unwrap();
        assert!(
            compiled.accepts(&json!({"a": {"type": "string"}})),
            "{draft}"
        );
        let nested = json!({"a": {"properties": {"b": {"type": 3}}}});
        assert!(!compiled.accepts(&nested), "{draft}");
        assert!(!compiled.problem_details(&nested).is_empty(), "{draft}");
    }
    let other = json!({"$ref": "https://json-schema.org/draft/2020-12/nothing"});
    assert_eq!(error_lines(&other).len(), 1);
}

#[test]
fn a_schema_may_refer_to_the_meta_schema_of_another_draft() {
    for own in DRAFTS {
        for other in DRAFTS {
            let schema = json!({"$schema": own, "properties": {"a": {"$ref": other}}});
            assert_eq!(
                error_lines(&schema),
                Vec::<String>::new(),
                "{own} to {other}"
            );
            let compiled = CompiledSchema::compile(&schema).unwrap();
            for (input, is_valid) in [
                (json!({"a": {"type": "string"}}), true),
                (json!({"a": {"properties": {"b": {"type": 3}}}}), false),
            ] {
                assert_eq!(
                    compiled.accepts(&input),
                    is_valid,
                    "{own} to {other}: {input}"
                );
            }
        }
    }
}

#[test]
fn the_id_of_draft_4_is_a_base() {
    let schema = |id: &str, draft: &str| {
        json!({
            "$schema": draft,
            id: "https://example.com/list.json",
            "definitions": {"n": {"type": "integer"}},
            "items": {"$ref": "list.json#/definitions/n"},
        })
    };
    let draft4 = "http://json-schema.org/draft-04/schema#";
    let draft6 = "http://json-schema.org/draft-06/schema#";
    for (schema, is_found) in [
        (schema("id", draft4), true),
        (schema("$id", draft6), true),
        (schema("$id", draft4), false),
        (schema("id", draft6), false),
    ] {
        let found = find_schema_errors(&schema);
        assert_eq!(found.is_empty(), is_found, "{schema} {found:?}");
        let compiled = CompiledSchema::compile(&schema);
        assert_eq!(compiled.is_ok(), is_found, "{schema}");
        if let Ok(compiled) = compiled {
            assert!(compiled.accepts(&json!([1])) && !compiled.accepts(&json!(["x"])));
        }
    }
}

#[test]
fn an_unknown_draft_inside_a_schema_is_an_error() {
    let schema = |draft: &str| json!({"properties": {"a": {"$id": "a", "$schema": draft}, "$schema": {"const": {"$schema": "x"}}}});
    assert_eq!(
        error_lines(&schema("https://example.com/my-draft")),
        [
            "/properties/a/$schema: it isn't a JSON Schema draft that toolq knows (omit it for `https://json-schema.org/draft/2020-12/schema`; 2019-09 and drafts 7, 6 and 4 are supported too)"
        ]
    );
    let known = schema("http://json-schema.org/draft-07/schema#");
    assert_eq!(error_lines(&known), Vec::<String>::new());
}

#[test]
fn data_is_not_read_as_a_schema() {
    let schema = json!({
        "properties": {"$ref": {"type": "string"}, "pattern": {"const": {"$ref": "http://x", "pattern": "("}}},
        "default": {"$ref": "file:///x"}, "examples": [{"pattern": "("}]
    });
    assert_eq!(error_lines(&schema), Vec::<String>::new());
}

#[test]
fn a_wrong_type_that_the_meta_schema_of_draft_6_allows_is_an_error() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-06/schema#",
        "properties": {"a": {"contentEncoding": 1}},
    });
    assert_eq!(
        error_lines(&schema),
        ["/properties/a/contentEncoding: must be string, not integer ()"]
    );
}

/// Whatever a draft's meta-schema leaves out, no keyword fails only when its tool is called.
#[test]
fn a_keyword_of_any_draft_with_any_value_is_an_error_or_compiles() {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e20),
        json!("a"),
        json!([]),
        json!([1]),
        json!(["a", "a"]),
        json!([{}]),
        json!({"a": 1}),
        json!({"a": ["b", "b"]}),
    ];
    let keywords: Vec<&str> = all_keywords().filter(|key| *key != "$schema").collect();
    for (draft, keyword) in DRAFTS
        .iter()
        .flat_map(|draft| keywords.iter().map(move |keyword| (draft, *keyword)))
    {
        for value in &values {
            let schema = json!({"$schema": draft, "minimum": 1, keyword: value});
            let found = find_schema_errors(&schema);
            let compiled = CompiledSchema::compile(&schema);
            assert_eq!(found.is_empty(), compiled.is_ok(), "{schema} {found:?}");
        }
    }
}

/// Hundreds of large patterns took seconds: each was compiled three times in a schema with references.
#[test]
fn a_small_pattern_is_not_compiled_to_check_a_schema() {
    let schema = |name, date| {
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": {"properties": {"name": {"pattern": name}, "date": {"pattern": date}}}},
            "allOf": [{"$ref": "#/definitions/a"}],
        })
    };
    let short = with_short_patterns(&schema("^.{1,250}$", "\\p{Letter}+"));
    assert_eq!(short, schema("a", "\\p{Letter}+"));
}

/// Drafts before 2019-09 allow fewer patterns.
#[test]
fn a_pattern_is_checked_in_the_draft_of_its_own_schema() {
    for (draft, is_valid) in [
        ("http://json-schema.org/draft-07/schema#", false),
        ("https://json-schema.org/draft/2020-12/schema", true),
    ] {
        let schema =
            json!({"properties": {"a": {"$id": "x", "$schema": draft, "pattern": "(?i)a"}}});
        let compiled = CompiledSchema::compile(&schema);
        assert_eq!(compiled.is_ok(), is_valid, "{draft}");
        let found = find_schema_errors(&schema);
        assert_eq!(found.is_empty(), is_valid, "{draft}: {found:?}");
    }
}

/// Anything that a file could have in place of a schema or of a part of one.
fn arbitrary_schema() -> impl Strategy<Value = Value> {
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

    /// Every error is found when the file is loaded, not only at the first call.
    #[test]
    fn a_schema_without_errors_compiles(schema in arbitrary_schema()) {
        let found = find_schema_errors(&schema);
        let compiled = CompiledSchema::compile(&schema);
        prop_assert_eq!(found.is_empty(), compiled.is_ok(), "{:?} {:?}", found, compiled.err());
        for fault in found {
            prop_assert!(schema.pointer(&fault.pointer).is_some(), "{:?}", fault);
        }
    }
}
