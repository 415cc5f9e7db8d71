use proptest::prelude::*;

use super::*;

const NO_TOOL_RULES: &[IgnorePattern] = &[];

fn recorded(text: &str) -> RecordedResult {
    RecordedResult {
        content: ResultContent::Text(text.to_owned()),
        is_error: Some(false),
        skipped: false,
        rejected: None,
    }
}

fn actual(text: &str) -> CallAnswer {
    CallAnswer {
        tool_use_id: "toolu_1".to_owned(),
        tool_name: "tool".to_owned(),
        content: ResultContent::Text(text.to_owned()),
        is_error: false,
        for_clients: None,
        report: toolq_core::types::CallReport::default(),
        has_number_id: false,
        kind: toolq_core::types::CallKind::Function,
    }
}

fn rules(compare: Compare, ignored: &[IgnorePattern]) -> CompareRules<'_> {
    CompareRules {
        compare,
        ignored: [NO_TOOL_RULES, ignored],
        normalizers: [&[], &[]],
    }
}

/// Returns the paths at which two texts differ.
fn mismatch_paths(before: &str, after: &str, rules: &CompareRules<'_>) -> Vec<String> {
    let found = find_mismatches(
        &recorded(before),
        &actual(after),
        rules,
        &mut IdRenaming::default(),
    );
    found.into_iter().map(|mismatch| mismatch.path).collect()
}

#[test]
fn json_is_compared_as_json_even_inside_strings() {
    let json = rules(Compare::Json, &[]);
    for (before, after, differ) in [
        (r#"{"a":1,"b":[2]}"#, r#"{ "b": [2.0], "a": 1 }"#, &[][..]),
        (r#"{"a":1}"#, r#"{"a":2}"#, &["/a"]),
        (r#"{"a":1}"#, r#"{"b":1}"#, &["/a", "/b"]),
        (r"[1,2]", r"[1,2,3]", &["/2"]),
        (r#"{"s":"{\"x\":1}"}"#, r#"{"s":"{ \"x\" : 1 }"}"#, &[]),
        (r#"{"s":"{\"x\":1}"}"#, r#"{"s":"{\"x\":2}"}"#, &["/s/x"]),
        (r#"{"a/b":{"~":1}}"#, r#"{"a/b":{"~":2}}"#, &["/a~1b/~0"]),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, &[""]),
        ("so much", "so little", &[""]),
        ("1.10", "1.1", &[""]),
        ("{", "{ ", &[""]),
        (r#"{"v":"1.10"}"#, r#"{"v":"1.1"}"#, &["/v"]),
        (r#"{"v":null}"#, r#"{"v":false}"#, &["/v"]),
        (r#"{"v":"\ud800"}"#, r#"{"v":"\ud801"}"#, &["/v"]),
    ] {
        assert_eq!(
            mismatch_paths(before, after, &json),
            differ,
            "{before} {after}"
        );
    }
}

#[test]
fn ignored_parts_may_differ_or_be_missing() {
    let parts = [
        IgnorePattern::parse("/meta/took_ms").unwrap(),
        IgnorePattern::parse("//id").unwrap(),
    ];
    let json = rules(Compare::Json, &parts);
    let before = r#"{"meta":{"took_ms":3},"rows":[{"id":1,"n":1}]}"#;
    let after = r#"{"meta":{"took_ms":4},"rows":[{"n":1}],"id":{"a":1}}"#;
    assert_eq!(mismatch_paths(before, after, &json), Vec::<String>::new());
    let wrong = r#"{"meta":{"took_ms":4},"rows":[{"n":2}]}"#;
    assert_eq!(mismatch_paths(before, wrong, &json), ["/rows/0/n"]);
}

#[test]
fn a_shape_is_keys_and_types() {
    let schema = rules(Compare::Schema, &[]);
    let before = r#"{"n":1,"rows":[{"s":"a"}],"none":[]}"#;
    let same = r#"{"rows":[{"s":"b"},{"s":"c"}],"n":7.5,"none":[3]}"#;
    assert!(mismatch_paths(before, same, &schema).is_empty());
    let other = r#"{"n":"1","rows":[{"s":"b"},{"t":"c"}],"none":[]}"#;
    assert_eq!(
        mismatch_paths(before, other, &schema),
        ["/n", "/rows/1/s", "/rows/1/t"]
    );
    assert!(mismatch_paths("09:00", "10:00", &schema).is_empty());
    assert_eq!(mismatch_paths(before, "oops", &schema), [""]);
}

#[test]
fn exact_and_none_are_respected() {
    let (one, other) = (r#"{"a":1}"#, r#"{"a": 1}"#);
    assert_eq!(
        mismatch_paths(one, other, &rules(Compare::Exact, &[])),
        [""]
    );
    assert!(mismatch_paths("a", "b", &rules(Compare::None, &[])).is_empty());
}

#[test]
fn ids_are_renamed_one_to_one() {
    let json = rules(Compare::Json, &[]);
    let before = r#"["toolu_0001","toolu_0002","toolu_0001"]"#;
    assert!(
        mismatch_paths(before, r#"["toolu_0011","toolu_0012","toolu_0011"]"#, &json).is_empty()
    );
    let mixed = r#"["toolu_0011","toolu_0011","toolu_0011"]"#;
    assert_eq!(mismatch_paths(before, mixed, &json), ["/1"]);
}

#[test]
fn an_error_differs_from_a_success() {
    let failed = CallAnswer {
        is_error: true,
        ..actual("x")
    };
    let found = find_mismatches(
        &recorded("x"),
        &failed,
        &rules(Compare::Json, &[]),
        &mut IdRenaming::default(),
    );
    assert_eq!(
        found[0].current.as_deref(),
        Some(r#"{"is_error":true,"content":"x"}"#)
    );
    let unflagged = RecordedResult {
        is_error: None,
        ..recorded("x")
    };
    let found = find_mismatches(
        &unflagged,
        &failed,
        &rules(Compare::Json, &[]),
        &mut IdRenaming::default(),
    );
    assert!(found.is_empty(), "a format without error flags");
}

#[test]
fn deep_nesting_does_not_overflow() {
    let deep = |middle: &str| format!("{}{middle}{}", "[".repeat(9_000), "]".repeat(9_000));
    assert_eq!(
        mismatch_paths(&deep("1"), &deep("2"), &rules(Compare::Json, &[])).len(),
        1
    );
    let json = rules(Compare::Json, &[]);
    let mut nested = ("1".to_owned(), "2".to_owned());
    for _ in 0..12 {
        nested = (
            format!("[{}]", to_json_string(&nested.0)),
            format!("[{}]", to_json_string(&nested.1)),
        );
    }
    assert_eq!(mismatch_paths(&nested.0, &nested.1, &json).len(), 1);
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::hash_map("[a-c]", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Two values match exactly if their parsed trees are equal.
    #[test]
    fn matching_equals_tree_equality(one in json_value(), other in json_value()) {
        let json = rules(Compare::Json, &[]);
        let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(&[value]).unwrap();
        let compact = |value: &serde_json::Value| serde_json::to_string(&[value]).unwrap();
        prop_assert!(mismatch_paths(&pretty(&one), &compact(&one), &json).is_empty());
        // Strings that contain JSON are compared as JSON, which tree equality doesn't do.
        let plain = |text: &str| !text.contains("\"[") && !text.contains("\"{");
        if plain(&compact(&one)) && plain(&compact(&other)) {
            let matches = mismatch_paths(&pretty(&one), &compact(&other), &json).is_empty();
            prop_assert_eq!(matches, one == other);
        }
    }
}
