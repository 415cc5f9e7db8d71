//! What is told of inputs that a schema doesn't take.

use serde_json::json;

use super::*;

fn problems(schema: &Value, input: &Value) -> Vec<String> {
    let schema = Schema::compile(schema, Path::new("/nonexistent")).unwrap();
    let details = schema.details(input);
    assert_eq!(details.is_empty(), schema.accepts(input));
    let line = |d: Detail| format!("{}: {}", d.path, d.message);
    details.into_iter().map(line).collect()
}

#[test]
fn every_problem_has_a_line_without_the_value() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "lines": {"type": "object", "properties": {"start": {"type": "integer", "minimum": 1}}},
            "mode": {"enum": ["fast", "slow"]},
            "tags": {"type": "array", "items": {"type": ["string", "null"]}, "uniqueItems": true},
            "code": {"pattern": "^[A-Z]+$"}
        },
        "required": ["path", "mode"],
        "additionalProperties": false
    });
    let input = json!({
        "path": "", "lines": {"start": "s3cret"}, "tags": [1, 1], "code": "s3cret", "pth": "s3cret"
    });
    let mut found = problems(&schema, &input);
    found.sort();
    assert_eq!(
        found,
        [
            "/code: must match the pattern `^[A-Z]+$`",
            "/lines/start: must be integer, not string",
            "/mode: is required",
            "/path: must not be empty",
            "/pth: is not allowed; did you mean `path`? Known: path, lines, mode, tags, code",
            "/tags/0: must be string or null, not integer",
            "/tags/1: must be string or null, not integer",
            "/tags: must not have the same item twice",
        ]
    );
}

#[test]
fn the_alternative_that_was_meant_is_told() {
    let one_of = |key: &str| {
        json!({"properties": {"x": {key: [
            {"type": "null"},
            {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["n"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "s": {"type": "string"}}}
        ]}}})
    };
    for schema in [one_of("anyOf"), one_of("oneOf")] {
        let told = |x: Value| problems(&schema, &json!({"x": x}));
        assert_eq!(told(json!(1)), ["/x: must be null or object, not integer"]);
        assert_eq!(
            told(json!({"kind": "b", "s": 1})),
            ["/x/s: must be string, not integer"]
        );
        assert_eq!(told(json!({"kind": "a"})), ["/x/n: is required"]);
        assert_eq!(
            told(json!({"kind": "c"})),
            ["/x: matches none of the 3 forms that are allowed"]
        );
    }
}

#[test]
fn many_problems_are_counted() {
    let found = problems(
        &json!({"items": {"type": "string"}}),
        &json!(vec![0; 1_000]),
    );
    assert_eq!(
        (found.len(), found[50].as_str()),
        (51, ": and 950 more problems")
    );
    let long = json!({"k".repeat(10_000): 1, "\u{202e}\n": 1});
    let found = problems(&json!({"additionalProperties": false}), &long);
    assert_eq!(found[1], "/\\u{202e}\\u{a}: is not allowed");
    assert!(found[0].len() < 700, "{found:?}");
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |below, _| json!({"l": below}))
}

/// FAULTS 27: references that lead back, or multiply, cost no more than the input and the schema are worth.
#[test]
fn recursive_references_end() {
    let back = json!({"$ref": "#/$defs/node"});
    let both = |keyword: &str| {
        json!({"$ref": "#/$defs/node", "$defs": {"node": {keyword: [
            {"type": "object", "properties": {"l": back}, "required": ["l"]},
            {"type": "object", "properties": {"l": back}, "required": ["l"]}
        ]}}})
    };
    for schema in [both("anyOf"), both("oneOf"), both("allOf")] {
        assert_eq!(problems(&schema, &nested(64)).len(), 1);
        assert!(!problems(&schema, &nested(3)).is_empty());
    }
    let tree = json!({"properties": {"l": {"$ref": "#"}}, "type": "object"});
    assert_eq!(
        problems(&tree, &nested(2)),
        ["/l/l: must be object, not string"]
    );
    for schema in [
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
    ] {
        assert_eq!(problems(&schema, &nested(64)), [""; 0]);
    }
}

#[test]
fn formats_annotate_only() {
    for draft in ["draft-07/schema#", "draft/2020-12/schema"] {
        let schema = json!({
            "$schema": format!("http://json-schema.org/{draft}"),
            "properties": {"at": {"type": "string", "format": "date-time"}, "n": {"format": "int32"}}
        });
        assert!(problems(&schema, &json!({"at": "no date", "n": 99_999_999_999_u64})).is_empty());
    }
}

/// FAULTS 24: patterns that make a backtracking engine try for hours are matched in one pass.
#[test]
fn patterns_are_matched_in_linear_time() {
    let text = "a".repeat(30_000) + "!";
    for pattern in [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a*)*b",
        "(.*)*=(.*)*x",
        "^([a-z]+)*$",
    ] {
        let found = problems(&json!({"pattern": pattern}), &json!(text));
        assert_eq!(found, [format!(": must match the pattern `{pattern}`")]);
    }
}
