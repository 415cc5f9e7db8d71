//! Problems of inputs that a schema rejects.

use serde_json::json;

use super::*;

fn problem_lines(schema: &Value, input: &Value) -> Vec<String> {
    let schema = CompiledSchema::compile(schema).unwrap();
    let details = schema.problem_details(input);
    assert_eq!(details.is_empty(), schema.accepts(input));
    let line = |d: ProblemDetail| format!("{}: {}", d.path, d.message);
    details.into_iter().map(line).collect()
}

/// Every problem is named by its JSON pointer, so that the model can correct all at once.
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

/// Programs can rely on them, unlike on the words of a message.
#[test]
fn each_problem_names_the_keyword_and_its_place_in_the_schema() {
    let schema = json!({
        "properties": {
            "n": {"minimum": 1},
            "at": {"anyOf": [{"type": "null"}, {"type": "string", "minLength": 2}]},
            "of": {"properties": {}, "additionalProperties": false}
        },
        "required": ["path"],
    });
    let schema = CompiledSchema::compile(&schema).unwrap();
    let details = schema.problem_details(&json!({"n": 0, "at": "a", "of": {"x": 1}}));
    let mut found: Vec<_> = details
        .iter()
        .map(|d| {
            [
                &*d.path,
                d.keyword.as_deref().unwrap(),
                d.schema_path.as_deref().unwrap(),
            ]
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ["/at", "minLength", "/properties/at/anyOf/1/minLength"],
            ["/n", "minimum", "/properties/n/minimum"],
            [
                "/of/x",
                "additionalProperties",
                "/properties/of/additionalProperties"
            ],
            ["/path", "required", "/required"],
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

/// Of 1,000 problems, as many are listed as fit into a short text, however long each of them is.
#[test]
fn excess_problems_are_counted() {
    let found = problem_lines(
        &json!({"items": {"type": "string"}}),
        &json!(vec![0; 1_000]),
    );
    let (listed, rest) = found.split_at(found.len() - 1);
    assert_eq!(
        rest,
        [format!(": and {} more problems", 1_000 - listed.len())]
    );
    assert!(listed.len() > 50, "{found:?}");
    let names: Vec<String> = (0..200).map(|number| format!("name {number}")).collect();
    for schema in [
        json!({"items": {"enum": names}}),
        json!({"items": {"const": "x".repeat(1_000)}}),
        json!({"items": {"anyOf": [{"enum": names}, {"enum": [1]}]}}),
        json!({"items": {"properties": {"a".repeat(300): {}}, "additionalProperties": false}}),
    ] {
        let found = problem_lines(&schema, &json!(vec![json!({"k": 1}); 1_000]));
        let bytes: usize = found.iter().map(String::len).sum();
        assert!(bytes < 3_000, "{bytes} {found:?}");
        assert!(
            found.last().unwrap().ends_with("more problems"),
            "{found:?}"
        );
    }
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

/// They refer to themselves in many places, but each value of an input has one of these places.
#[test]
fn problems_of_a_schema_as_input_are_listed_however_deep_they_are() {
    for draft in [
        "draft-04/schema#",
        "draft-06/schema#",
        "draft-07/schema#",
        "draft/2019-09/schema",
        "draft/2020-12/schema",
    ] {
        let scheme = if draft.starts_with("draft-") {
            "http"
        } else {
            "https"
        };
        let meta_schema = json!({"$ref": format!("{scheme}://json-schema.org/{draft}")});
        let nested = (0..40).fold(
            json!({"type": "text"}),
            |inner, _| json!({"properties": {"p": {"items": inner}}}),
        );
        let found = problem_lines(&meta_schema, &nested);
        assert!(!found.is_empty(), "{draft}");
        for line in found {
            assert!(!line.contains("too deeply"), "{draft}: {line}");
            assert!(line.starts_with("/properties/p"), "{draft}: {line}");
        }
    }
}

/// No call depends on whether a `format` is known.
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

/// The digits reach the tool all the same. The schema sees what a JSON tree holds.
#[test]
fn numbers_that_no_float_holds_are_judged_by_the_nearest_one() {
    for (keywords, number, valid) in [
        (json!({"type": "integer"}), "12345678901234567890123", true),
        (json!({"type": "integer"}), "123456789012345678.5", true),
        (json!({"type": "integer"}), "18446744073709551615.5", true),
        (json!({"type": "integer"}), "0.5", false),
        (json!({"maximum": 100}), "100.00000000000000000001", true),
        (json!({"maximum": 100}), "12345678901234567890123", false),
        (json!({"enum": [100]}), "100.00000000000000000001", true),
        (json!({"minimum": i64::MIN}), "-9223372036854775808", true),
        (json!({"maximum": u64::MAX}), "18446744073709551615", true),
    ] {
        let schema = CompiledSchema::compile(&json!({"properties": {"n": keywords}})).unwrap();
        let input = Input::parse(&format!(r#"{{"n":{number}}}"#)).unwrap();
        assert_eq!(
            schema.accepts(&input.to_value()),
            valid,
            "{keywords} {number}"
        );
    }
}
