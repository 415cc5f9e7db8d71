//! Problems of inputs that a schema rejects.

use serde_json::json;

use super::*;

fn problem_lines(schema: &Value, input: &Value) -> Vec<String> {
    let schema = CompiledSchema::compile(schema, Path::new("/nonexistent")).unwrap();
    let details = schema.problem_details(input);
    assert_eq!(details.is_empty(), schema.accepts(input));
    let line = |d: ProblemDetail| format!("{}: {}", d.path, d.message);
    details.into_iter().map(line).collect()
}

#[test]
fn problems_are_reported_without_the_value() {
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
    let mut found = problem_lines(&schema, &input);
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
            "/tags: must not contain duplicate items",
        ]
    );
}

#[test]
fn the_intended_alternative_is_reported() {
    let one_of = |key: &str| {
        json!({"properties": {"x": {key: [
            {"type": "null"},
            {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["n"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "s": {"type": "string"}}}
        ]}}})
    };
    for schema in [one_of("anyOf"), one_of("oneOf")] {
        let problems_of = |x: Value| problem_lines(&schema, &json!({"x": x}));
        assert_eq!(
            problems_of(json!(1)),
            ["/x: must be null or object, not integer"]
        );
        assert_eq!(
            problems_of(json!({"kind": "b", "s": 1})),
            ["/x/s: must be string, not integer"]
        );
        assert_eq!(problems_of(json!({"kind": "a"})), ["/x/n: is required"]);
        assert_eq!(
            problems_of(json!({"kind": "c"})),
            ["/x: matches none of the 3 allowed forms"]
        );
    }
}

#[test]
fn excess_problems_are_counted() {
    let found = problem_lines(
        &json!({"items": {"type": "string"}}),
        &json!(vec![0; 1_000]),
    );
    assert_eq!(
        (found.len(), found[50].as_str()),
        (51, ": and 950 more problems")
    );
    let long = json!({"k".repeat(10_000): 1, "\u{202e}\n": 1});
    let found = problem_lines(&json!({"additionalProperties": false}), &long);
    assert_eq!(found[1], "/\\u{202e}\\u{a}: is not allowed");
    assert!(found[0].len() < 700, "{found:?}");
}

fn nested_object(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |inner, _| json!({"l": inner}))
}

/// Recursive or multiplying references must not cost more time than the sizes of the input and the schema justify.
#[test]
fn recursive_references_terminate() {
    let back = json!({"$ref": "#/$defs/node"});
    let both = |keyword: &str| {
        json!({"$ref": "#/$defs/node", "$defs": {"node": {keyword: [
            {"type": "object", "properties": {"l": back}, "required": ["l"]},
            {"type": "object", "properties": {"l": back}, "required": ["l"]}
        ]}}})
    };
    for schema in [both("anyOf"), both("oneOf"), both("allOf")] {
        assert_eq!(problem_lines(&schema, &nested_object(64)).len(), 1);
        assert!(!problem_lines(&schema, &nested_object(3)).is_empty());
    }
    let tree = json!({"properties": {"l": {"$ref": "#"}}, "type": "object"});
    assert_eq!(
        problem_lines(&tree, &nested_object(2)),
        ["/l/l: must be object, not string"]
    );
    for schema in [
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
    ] {
        assert_eq!(problem_lines(&schema, &nested_object(64)), [""; 0]);
    }
}

#[test]
fn formats_are_annotations_only() {
    for draft in ["draft-07/schema#", "draft/2020-12/schema"] {
        let schema = json!({
            "$schema": format!("http://json-schema.org/{draft}"),
            "properties": {"at": {"type": "string", "format": "date-time"}, "n": {"format": "int32"}}
        });
        assert!(
            problem_lines(&schema, &json!({"at": "no date", "n": 99_999_999_999_u64})).is_empty()
        );
    }
}

/// These patterns would keep a backtracking engine busy for hours.
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
        let found = problem_lines(&json!({"pattern": pattern}), &json!(text));
        assert_eq!(found, [format!(": must match the pattern `{pattern}`")]);
    }
}
