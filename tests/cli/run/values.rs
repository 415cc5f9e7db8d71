//! Unusual values, names and ids of calls, and defaults.

use serde_json::{Value, json};

use crate::run::toolq;
use crate::support::{CliSandbox, model_response, parse_json_lines};

/// Each value is passed verbatim as one argument. Placeholders in it aren't expanded.
#[test]
fn values_are_passed_verbatim() {
    let hostile = [
        "$(touch canary)",
        "`touch canary`",
        "; touch canary",
        "| touch canary",
        "a b  c",
        "*",
        "~",
        "{text}",
        "{{text}",
        "${HOME}",
        "%s%n",
        "'\"\\",
        "\u{202e}abc",
        "a\nb",
        "$HOME",
        "!!",
        "\u{7f}",
    ];
    let calls: Vec<(&str, Value)> = hostile
        .iter()
        .map(|text| ("say", json!({"text": text})))
        .collect();
    let ran = toolq()
        .stdin(model_response(&calls))
        .run(&["run"])
        .assert_exit(0);
    let texts: Vec<String> = ran
        .result_texts()
        .into_iter()
        .map(|(text, _)| text)
        .collect();
    assert_eq!(texts, hostile);
    assert!(!ran.dir.path().join("canary").exists());
}

/// JSON and stdin may contain a NUL. Arguments, environment variables and headers may not.
#[test]
fn a_nul_is_allowed_only_in_json_and_stdin() {
    let input = "input_schema: {type: object, properties: {x: {}}, required: [x]}";
    let tools = format!(
        r#"
version: 1
tools:
  json: {{description: d, {input}, command: [cat]}}
  text: {{description: d, {input}, command: {{argv: [cat], stdin: "{{x}}"}}}}
  argument: {{description: d, {input}, command: [touch, --, "{{x}}"]}}
  items: {{description: d, {input}, command: [touch, --, "{{x...}}"]}}
  variable: {{description: d, {input}, command: {{argv: [touch, made], env: {{X: "{{x}}"}}}}}}
  header: {{description: d, {input}, http: {{url: "http://127.0.0.1:1/", headers: {{x: "{{x}}"}}}}}}
"#
    );
    let text = json!({"x": "a\0b"});
    let ran = CliSandbox::new()
        .tools(&tools)
        .stdin(model_response(&[
            ("json", text.clone()),
            ("text", text.clone()),
            ("argument", text.clone()),
            ("items", json!({"x": ["made", "a\0b"]})),
            ("variable", text.clone()),
            ("header", text),
        ]))
        .run(&["run"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts[0], (r#"{"x":"a\u0000b"}"#.to_owned(), false));
    assert_eq!(texts[1], ("a\0b".to_owned(), false));
    for (text, is_error) in &texts[2..] {
        assert!(*is_error && text.contains("it was not run"), "{text}");
    }
    assert!(!ran.dir.path().join("made").exists());
}

/// A name is never matched loosely: not by case, by look-alike characters, or by path. The result lists the known
/// tools.
#[test]
fn an_unknown_tool_name_is_truncated_and_escaped() {
    let long = "x".repeat(5_000);
    let names = [
        "Say",
        "ѕay",
        "\u{1b}[2Jsay",
        "say\u{202e}",
        "../say",
        "",
        &long,
    ];
    let calls: Vec<(&str, Value)> = names
        .iter()
        .map(|name| (*name, json!({"text": "x"})))
        .collect();
    let ran = toolq()
        .stdin(model_response(&calls))
        .run(&["run"])
        .assert_exit(0);
    for (name, (text, is_error)) in names.iter().zip(ran.result_texts()) {
        assert!(is_error && text.contains("known: echo, say"), "{name}");
        assert!(text.len() < 500 && !text.contains(['\u{1b}', '\u{202e}']));
    }
    assert!(ran.result_texts()[0].0.contains("did you mean `say`?"));
}

/// A call with a very long ID gets its result even though its program can't be started: the ID doesn't fit into an
/// environment variable. The log has a result for every start.
#[test]
fn an_id_too_long_for_the_environment_gets_its_result() {
    let id = "x".repeat(200_000);
    let block = json!({"type": "tool_use", "id": id, "name": "say", "input": {"text": "x"}});
    let ran = toolq()
        .stdin(block.to_string())
        .run(&["run"])
        .assert_exit(0);
    assert_eq!(ran.json()["tool_use_id"], id);
    assert_eq!(ran.json()["is_error"], true);
    let log = ran.log_records();
    let count = |kind| log.iter().filter(|record| record["type"] == kind).count();
    assert_eq!(count("tool_start"), count("tool_result"));
}

/// The log has the input as it came, so a resumed run recognizes the call.
#[test]
fn a_default_is_executed_and_logged_with_the_original() {
    let ran = CliSandbox::new()
        .tools(
            "version: 1\ntools:\n  seq:\n    description: Count.\n    input_schema: {type: object, properties: {n: {type: integer, default: 2}}, additionalProperties: false}\n    estimate: 2s\n    command: [seq, \"{n}\"]\n",
        )
        .stdin(model_response(&[
            ("seq", json!({})),
            ("seq", json!({"n": 1})),
            ("seq", json!({"n": "3"})),
        ]))
        .run(&["run", "--log", "log"])
        .assert_exit(0);
    let texts: Vec<_> = ran.json()["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["content"].clone())
        .collect();
    assert_eq!(texts, ["1\n2", "1", "1\n2\n3"]);
    let summary = ran.stderr.lines().next().unwrap();
    let adjusted = "3 ok; 1 with a coerced input, 1 with defaults added; ";
    assert!(summary.contains(adjusted), "{summary}");
    let calls: Vec<Value> = parse_json_lines(&ran.file("log").unwrap())
        .into_iter()
        .filter(|record| record["type"] == "tool_call")
        .collect();
    assert_eq!(calls[0]["content"]["input"], json!({"n": 2}));
    assert_eq!(calls[0]["metadata"]["input_before_coercion"], json!({}));
    assert_eq!(calls[1]["metadata"].get("input_before_coercion"), None);
}
