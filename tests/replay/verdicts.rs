//! What holds and what does not.

use serde_json::json;

use crate::{TOOLS, counts, differ, fails, replay, says, scene, turn};

#[test]
fn what_is_as_recorded_holds() {
    let recording = turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            says("so much depends\nupon"),
        ),
        ("b", "write", json!({"text": "x"}), says("something else")),
        ("c", "ask", json!({}), says("an answer")),
    ]);
    let ran = replay(&recording, &[]).exits(0);
    assert_eq!(counts(&ran), [3, 1, 2, 3]);
    assert_eq!(differ(&ran), []);
    assert!(ran.file("trace").is_none(), "a tool that writes is not run");
    let report = ran.json();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "files", "turns", "calls", "executed", "served", "matched", "differ"
        ]
    );
}

#[test]
fn every_violation_of_todays_schema_has_its_pointer() {
    let calls = turn(&[
        ("a", "read", json!({"pth": "poem"}), says("x")),
        ("b", "write", json!({"text": ""}), says("x")),
        ("c", "reed", json!({}), says("x")),
        ("d", "read", json!({"path": 3}), fails("refused then, too")),
        ("e", "reed", json!({}), fails("unknown then, too")),
    ]);
    let ran = replay(&calls, &[]).exits(1);
    let row = |kind: &str, path: &str| (kind.to_owned(), path.to_owned());
    assert_eq!(
        differ(&ran),
        [
            row("schema", "/pth"),
            row("schema", "/path"),
            row("schema", "/text"),
            row("unknown_tool", "")
        ]
    );
    let report = ran.json();
    assert_eq!(
        report["differ"][0],
        json!({"file": "r.jsonl", "turn": 0, "tool_use_id": "a", "tool_name": "read", "kind": "schema", "path": "/pth",
            "expected": report["differ"][0]["expected"], "actual": "poem"})
    );
    assert_eq!(report["differ"][2]["actual"], "");
    assert_eq!(counts(&ran), [5, 0, 2, 2]);
}

/// A schema that changed since is found in what held before.
#[test]
fn a_changed_schema_is_found() {
    let recording = turn(&[("a", "write", json!({"text": "x"}), says("written"))]);
    replay(&recording, &[]).exits(0);
    let ran = scene()
        .tools(&TOOLS.replace("minLength: 1", "minLength: 2"))
        .file("r.jsonl", recording)
        .run(&["replay", "r.jsonl", "--json", "-"])
        .exits(1);
    assert_eq!(differ(&ran), [("schema".to_owned(), "/text".to_owned())]);
}

#[test]
fn a_call_without_a_result_is_missing_but_in_the_last_turn() {
    let open = |id| turn(&[(id, "write", json!({"text": "x"}), None)]);
    let ran = replay(&[open("a"), open("b")].concat(), &[]).exits(1);
    assert_eq!(differ(&ran), [("missing".to_owned(), String::new())]);
    let ran = replay(&open("a"), &[]).exits(0);
    assert_eq!(counts(&ran), [1, 0, 0, 0]);
    // One that is run is not missing.
    let read = turn(&[("a", "read", json!({"path": "poem"}), None)]);
    let ran = replay(&[read, open("b")].concat(), &[]).exits(0);
    assert_eq!(counts(&ran), [2, 1, 0, 0]);
}

#[test]
fn results_are_compared_as_json() {
    let input = || json!({"path": "data"});
    let result = |text: &str| turn(&[("a", "read", input(), says(text))]);
    let pretty = "{ \"rows\": [ {\"n\": 1.5, \"id\": 1} ],\n \"took_ms\": 3.0 }";
    replay(&result(pretty), &[]).exits(0);
    let ran = replay(
        &result(r#"{"took_ms": 4, "rows": [{"id": 2, "n": 1.5}]}"#),
        &[],
    )
    .exits(1);
    let row = |path: &str| ("result".to_owned(), path.to_owned());
    assert_eq!(differ(&ran), [row("/took_ms"), row("/rows/0/id")]);
    assert_eq!(ran.json()["differ"][0]["expected"], 4);
    assert_eq!(ran.json()["differ"][0]["actual"], 3);
    let other = r#"{"took_ms": 4, "rows": [{"id": 2, "n": 1.5000000001}]}"#;
    let flags = [
        "--ignore",
        "/took_ms",
        "--ignore",
        "//id",
        "--tolerance",
        "1e-9",
    ];
    replay(&result(other), &flags).exits(0);
    replay(&result(other), &flags[..4]).exits(1);
    let blocks = json!([{"type": "text", "text": pretty}]);
    replay(&turn(&[("a", "read", input(), says(blocks))]), &[]).exits(0);
}

/// A tool's own `compare` and `ignore`.
#[test]
fn a_tool_says_how_it_is_compared() {
    let recording = turn(&[(
        "a",
        "read",
        json!({"path": "data"}),
        says(r#"{"took_ms":7,"rows":[{"id":1,"n":1.5}]}"#),
    )]);
    for (setting, code, executed) in [
        ("ignore: [/took_ms]", 0, 1),
        ("ignore: [//n]", 1, 1),
        ("compare: json", 1, 1),
        ("compare: exact", 1, 1),
        ("compare: schema", 0, 1),
        ("compare: none", 0, 0),
    ] {
        let tools = TOOLS.replacen(
            "effect: read\n",
            &format!("effect: read\n    {setting}\n"),
            1,
        );
        let ran = scene()
            .tools(&tools)
            .file("r.jsonl", &recording)
            .run(&["replay", "r.jsonl", "--json", "-"])
            .exits(code);
        assert_eq!(counts(&ran)[1], executed, "{setting}");
    }
}

#[test]
fn an_error_in_place_of_a_result_differs() {
    let poem = || json!({"path": "poem"});
    let ran = replay(
        &turn(&[
            ("a", "read", poem(), fails("so much depends\nupon")),
            ("b", "read", json!({"path": "nothing"}), says("so much")),
        ]),
        &[],
    )
    .exits(1);
    assert_eq!(differ(&ran).len(), 2);
    let report = ran.json();
    assert_eq!(report["differ"][0]["expected"]["is_error"], true);
    assert_eq!(report["differ"][0]["actual"]["is_error"], false);
    assert_eq!(report["differ"][1]["actual"]["is_error"], true);
}

/// FAULTS 131: no secret in a report or on the screen.
#[test]
fn secrets_are_masked() {
    let tools = TOOLS.replace("version: 1", "version: 1\nsecrets: [TOKEN]");
    let recording = turn(&[
        ("a", "read", json!({"path": "key"}), says("hunter2hunter3")),
        (
            "b",
            "read",
            json!({"hunter2hunter2": "hunter2hunter2"}),
            says("x"),
        ),
    ]);
    let ran = scene()
        .tools(&tools)
        .env("TOKEN", "hunter2hunter2")
        .file("key", "hunter2hunter2")
        .file("r.jsonl", recording)
        .run(&[
            "replay",
            "r.jsonl",
            "--json",
            "j",
            "--junit",
            "x",
            "--markdown",
            "m",
        ])
        .exits(1);
    let all = [
        ran.stderr.clone(),
        ran.file("j").unwrap(),
        ran.file("x").unwrap(),
        ran.file("m").unwrap(),
    ];
    for text in &all {
        assert!(
            text.contains("[masked]") && !text.contains("hunter2hunter2"),
            "{text}"
        );
    }
}
