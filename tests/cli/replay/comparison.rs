//! Which recorded calls match, and which differ.

use serde_json::{Value, json};

use crate::replay::{
    TOOLS, differences, error_result, ok_result, recorded_turn, replay, replay_sandbox,
    report_counts,
};

#[test]
fn equal_results_match() {
    let recording = recorded_turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            ok_result("so much depends\nupon"),
        ),
        (
            "b",
            "write",
            json!({"text": "x"}),
            ok_result("something else"),
        ),
        ("c", "ask", json!({}), ok_result("a reply")),
    ]);
    let ran = replay(&recording, &[]).assert_exit(0);
    assert_eq!(report_counts(&ran), [3, 1, 2, 3]);
    assert_eq!(differences(&ran), []);
    assert!(
        ran.file("trace").is_none(),
        "a tool that writes must not run"
    );
    let report = ran.json();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "files",
            "turns",
            "calls",
            "executed",
            "served",
            "matched",
            "stale",
            "unrecorded",
            "abandoned",
            "differ"
        ]
    );
}

#[test]
fn every_violation_of_the_current_schema_has_its_pointer() {
    let calls = recorded_turn(&[
        ("a", "read", json!({"pth": "poem"}), ok_result("x")),
        ("b", "write", json!({"text": ""}), ok_result("x")),
        ("c", "reed", json!({}), ok_result("x")),
        (
            "d",
            "read",
            json!({"path": 3}),
            error_result("Invalid input for read; it was not run:\n- /path: is not a string"),
        ),
    ]);
    let ran = replay(&calls, &[]).assert_exit(1);
    let row = |kind: &str, path: &str| (kind.to_owned(), path.to_owned());
    assert_eq!(
        differences(&ran),
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
    assert_eq!(report_counts(&ran), [4, 0, 1, 1]);
}

/// An error of a tool that ran is not a refusal: a call that today's tools reject differs, whatever it returned then.
#[test]
fn an_error_of_a_tool_that_ran_hides_no_rejection() {
    let recorded = |name: &str, input: Value, result_text: &str| {
        recorded_turn(&[("a", name, input, error_result(result_text))])
    };
    let row = |kind: &str, path: &str| (kind.to_owned(), path.to_owned());
    for result_text in [
        "Error: exit code 1",
        "cat: poem: No such file or directory",
        "Exit code 2.\nInvalid input for read; it was not run:",
        "Invalid input for other; it was not run:",
        "",
    ] {
        let ran = replay(&recorded("read", json!({"pth": "x"}), result_text), &[]).assert_exit(1);
        assert_eq!(
            differences(&ran),
            [row("schema", "/pth"), row("schema", "/path")],
            "{result_text}"
        );
        assert_eq!(report_counts(&ran), [1, 0, 0, 0]);
    }
    // A tool that is gone differs even if it didn't exist back then.
    for result_text in [
        "boom",
        "<tool_use_error>Error: No such tool available: reed</tool_use_error>",
        "Unknown tool: no tool named `reed`; did you mean `read`?",
    ] {
        let ran = replay(&recorded("reed", json!({}), result_text), &[]).assert_exit(1);
        assert_eq!(
            differences(&ran),
            [row("unknown_tool", "")],
            "{result_text}"
        );
    }
}

/// A call that today's tools reject differs, unless the recording shows that it was rejected back then, too.
#[test]
fn a_recorded_refusal_matches() {
    for result_text in [
        "<tool_use_error>InputValidationError: read failed</tool_use_error>",
        "InputValidationError: [{\"code\":\"invalid_type\"}]",
        "Invalid input for read; it was not run:\n- /path: is required",
        "Not executed: another call of this turn has the same id.",
    ] {
        let call = (
            "a",
            "read",
            json!({"path": 3, "x": 1}),
            error_result(result_text),
        );
        let ran = replay(&recorded_turn(&[call]), &[]).assert_exit(0);
        assert_eq!(report_counts(&ran), [1, 0, 1, 1], "{result_text}");
        // The same text that isn't an error is something that a tool returned.
        let call = (
            "a",
            "read",
            json!({"path": 3, "x": 1}),
            ok_result(result_text),
        );
        replay(&recorded_turn(&[call]), &[]).assert_exit(1);
    }
}

/// A recorded input that the current schema rejects is a difference.
#[test]
fn a_changed_schema_is_a_difference() {
    let recording = recorded_turn(&[("a", "write", json!({"text": "x"}), ok_result("written"))]);
    replay(&recording, &[]).assert_exit(0);
    let ran = replay_sandbox()
        .tools(&TOOLS.replace("minLength: 1", "minLength: 2"))
        .file("r.jsonl", recording)
        .run(&["replay", "r.jsonl", "--json", "-"])
        .assert_exit(1);
    assert_eq!(
        differences(&ran),
        [("schema".to_owned(), "/text".to_owned())]
    );
    // The value was recorded, and is no line of a result that came to it.
    let shown = ran.stderr.lines().nth(1);
    assert_eq!(shown, Some("    x"), "{}", ran.stderr);
}

#[test]
fn a_call_without_a_result_is_missing_except_in_the_last_turn() {
    let message = |id: &str, name: &str, input: Value| {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        format!("{}\n", json!({"role": "assistant", "content": [block]}))
    };
    let without_result = |id| message(id, "write", json!({"text": "x"}));
    let recording = [without_result("a"), without_result("b")].concat();
    let ran = replay(&recording, &[]).assert_exit(1);
    assert_eq!(differences(&ran), [("missing".to_owned(), String::new())]);
    // Comparing nothing is no success, but nothing is missing either.
    let ran = replay(&without_result("a"), &[]).assert_exit(2);
    assert_eq!(report_counts(&ran), [1, 0, 0, 0]);
    // A call that is run isn't missing.
    let read = message("a", "read", json!({"path": "poem"}));
    let ran = replay(&[read, without_result("b")].concat(), &[]).assert_exit(2);
    assert_eq!(report_counts(&ran), [2, 1, 0, 0]);
    assert_eq!(ran.json()["unrecorded"], 2);
}

/// Nobody waits for its result, so it neither runs nor is missing.
#[test]
fn a_call_that_the_conversation_went_past_is_counted_apart() {
    let abandoned = recorded_turn(&[("a", "write", json!({"text": "x"}), None)]);
    let said = format!("{}\n", json!({"role": "user", "content": "never mind"}));
    let after = recorded_turn(&[("b", "write", json!({"text": "x"}), ok_result("written"))]);
    let ran = replay(&[abandoned, said, after].concat(), &[]).assert_exit(0);
    assert!(differences(&ran).is_empty());
    assert_eq!(ran.json()["abandoned"], 1);
    assert_eq!(ran.json()["matched"], 1);
}

#[test]
fn results_are_compared_as_json() {
    let input = || json!({"path": "data"});
    let result = |text: &str| recorded_turn(&[("a", "read", input(), ok_result(text))]);
    let pretty = "{ \"rows\": [ {\"n\": 1.5, \"id\": 1} ],\n \"took_ms\": 3.0 }";
    replay(&result(pretty), &[]).assert_exit(0);
    let ran = replay(
        &result(r#"{"took_ms": 4, "rows": [{"id": 2, "n": 1.5}]}"#),
        &[],
    )
    .assert_exit(1);
    let row = |path: &str| ("result".to_owned(), path.to_owned());
    assert_eq!(differences(&ran), [row("/took_ms"), row("/rows/0/id")]);
    assert_eq!(ran.json()["differ"][0]["expected"], 4);
    assert_eq!(ran.json()["differ"][0]["actual"], 3);
    let other = r#"{"took_ms": 4, "rows": [{"id": 2, "n": 1.50}]}"#;
    let flags = ["--ignore", "/took_ms", "--ignore", "//id"];
    replay(&result(other), &flags).assert_exit(0);
    replay(&result(other), &flags[..2]).assert_exit(1);
    let blocks = json!([{"type": "text", "text": pretty}]);
    replay(
        &recorded_turn(&[("a", "read", input(), ok_result(blocks))]),
        &[],
    )
    .assert_exit(0);
}

/// A tool's `compare` and `ignore` settings apply to its results.
#[test]
fn compare_and_ignore_come_from_the_tool() {
    let recording = recorded_turn(&[(
        "a",
        "read",
        json!({"path": "data"}),
        ok_result(r#"{"took_ms":7,"rows":[{"id":1,"n":1.5}]}"#),
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
        let ran = replay_sandbox()
            .tools(&tools)
            .file("r.jsonl", &recording)
            .run(&["replay", "r.jsonl", "--json", "-"])
            .assert_exit(code);
        assert_eq!(report_counts(&ran)[1], executed, "{setting}");
    }
}

#[test]
fn an_error_in_place_of_a_result_differs() {
    let poem = || json!({"path": "poem"});
    let ran = replay(
        &recorded_turn(&[
            ("a", "read", poem(), error_result("so much depends\nupon")),
            (
                "b",
                "read",
                json!({"path": "nothing"}),
                ok_result("so much"),
            ),
        ]),
        &[],
    )
    .assert_exit(1);
    assert_eq!(differences(&ran).len(), 2);
    let report = ran.json();
    assert_eq!(report["differ"][0]["expected"]["is_error"], true);
    assert_eq!(report["differ"][0]["actual"]["is_error"], false);
    assert_eq!(report["differ"][1]["actual"]["is_error"], true);
}

/// A recording may contain a secret.
#[test]
fn secrets_are_masked_in_reports_and_on_stderr() {
    let tools = TOOLS.replace("version: 1", "version: 1\nsecrets: [TOKEN]");
    let recording = recorded_turn(&[
        (
            "a",
            "read",
            json!({"path": "key"}),
            ok_result("hunter2hunter3"),
        ),
        (
            "b",
            "read",
            json!({"hunter2hunter2": "hunter2hunter2"}),
            ok_result("x"),
        ),
    ]);
    let ran = replay_sandbox()
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
        .assert_exit(1);
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

/// Other programs record an empty text where toolq says that there is no output.
#[test]
fn an_empty_recorded_result_matches_no_output() {
    let calls = recorded_turn(&[
        ("a", "read", json!({"path": "blank"}), ok_result("")),
        (
            "b",
            "read",
            json!({"path": "blank"}),
            ok_result("(no output)"),
        ),
        ("c", "read", json!({"path": "poem"}), ok_result("")),
        ("d", "read", json!({"path": "blank"}), ok_result("x")),
    ]);
    let ran = replay(&calls, &[]).assert_exit(1);
    let ids: Vec<_> = ran.json()["differ"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["tool_use_id"].clone())
        .collect();
    assert_eq!(ids, ["c", "d"]);
}

/// Most outputs are text, and contain times, hashes and durations.
#[test]
fn text_that_changes_every_time_can_be_ignored_or_replaced() {
    let read = |result_text: &str| {
        recorded_turn(&[("a", "read", json!({"path": "log"}), ok_result(result_text))])
    };
    let sandbox = |tools: &str| {
        replay_sandbox()
            .tools(tools)
            .file("log", "commit 1f3a\nok in 12ms")
            .file("r.jsonl", read("commit 9b20\nok in 7ms"))
    };
    let run = |tools: &str, arguments: &[&str]| {
        sandbox(tools).run(&[&["replay", "r.jsonl", "--json", "-"], arguments].concat())
    };
    run(TOOLS, &[]).assert_exit(1);
    let flags = [
        "--ignore-text",
        "[0-9a-f]{4}$",
        "--ignore-text",
        r"(?m)\d+ms|\b[0-9a-f]{4}$",
    ];
    run(TOOLS, &flags).assert_exit(0);
    // One is not enough, and the rest is still compared. Reports leave out what is ignored.
    let ran = run(TOOLS, &["--ignore-text", r"\d+ms"]).assert_exit(1);
    assert_eq!(ran.json()["differ"][0]["expected"], "commit 9b20\nok in ");
    let own = r"    normalize: [{pattern: '\d+ms', with: TIME}]";
    let tool = TOOLS.replacen(
        "    effect: read\n",
        &format!("    effect: read\n{own}\n"),
        1,
    );
    run(&tool, &[]).assert_exit(1);
    run(&tool, &["--ignore-text", r"(?m)\b[0-9a-f]{4}$"]).assert_exit(0);
    let file = tool.replace(
        "version: 1",
        "version: 1\nnormalize: [{pattern: 'commit (?<hash>\\w+)', with: 'commit'}]",
    );
    run(&file, &[]).assert_exit(0);
    let exact = file.replacen(
        "    effect: read\n",
        "    effect: read\n    compare: exact\n",
        1,
    );
    run(&exact, &[]).assert_exit(0);
}

#[test]
fn normalizing_applies_to_strings_in_json_and_hides_no_other_difference() {
    let result_text =
        |took: &str, word: &str| format!(r#"{{"message": "{word} in {took}", "n": 1}}"#);
    let replay_recorded = |recorded: String| {
        replay_sandbox()
            .file("data", result_text("3ms", "done"))
            .file(
                "r.jsonl",
                recorded_turn(&[("a", "read", json!({"path": "data"}), ok_result(recorded))]),
            )
            .run(&[
                "replay",
                "r.jsonl",
                "--json",
                "-",
                "--ignore-text",
                r"\d+ms",
            ])
    };
    replay_recorded(result_text("900ms", "done")).assert_exit(0);
    let ran = replay_recorded(result_text("900ms", "failed")).assert_exit(1);
    assert_eq!(
        differences(&ran),
        [("result".to_owned(), "/message".to_owned())]
    );
}

#[test]
fn a_normalizer_that_is_no_regular_expression_is_an_error() {
    let wrong = TOOLS.replace(
        "version: 1",
        "version: 1\nnormalize: [{pattern: '('}, {with: x}]",
    );
    let ran = replay_sandbox()
        .tools(&wrong)
        .run(&["check"])
        .assert_exit(1);
    assert!(
        ran.stdout.is_empty() || ran.stderr.is_empty(),
        "{}",
        ran.stdout
    );
    let output = ran.stdout.clone() + &ran.stderr;
    assert!(
        output.contains("unclosed group") && output.contains("`pattern` is missing"),
        "{output}"
    );
    let ran = replay_sandbox().run(&["replay", "r.jsonl", "--ignore-text", "("]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("unclosed group"), "{}", ran.stderr);
    let unused = TOOLS.replacen(
        "    effect: read\n",
        "    effect: read\n    compare: none\n    normalize: [{pattern: x}]\n",
        1,
    );
    let ran = replay_sandbox().tools(&unused).run(&["check"]);
    let output = ran.stdout.clone() + &ran.stderr;
    assert!(output.contains("`normalize` does nothing"), "{output}");
}
