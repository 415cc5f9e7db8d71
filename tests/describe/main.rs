//! Tools that describe themselves.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod lazily;
#[path = "../support/mod.rs"]
mod support;
mod told;

use serde_json::json;
use support::{Toolq, response};

/// `say`, whose program leaves a line in `asked` each time that it describes itself, and then prints `says`.
fn file(says: &str) -> String {
    format!(
        r#"version: 1
tools:
  say:
    describe: [sh, -c, 'echo "$WHO" >> asked; {says}']
    timeout: 20s
    effect: read
    command: {{argv: [printf, "%s", "{{x}}"], env: {{WHO: me, X: "{{x}}"}}}}
  other:
    input_schema: {{type: object}}
    effect: read
    command: [echo, here]
"#
    )
}

const WELL: &str = "cat said";

fn said() -> String {
    let schema =
        json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]});
    json!({"description": "Says x.", "input_schema": schema}).to_string()
}

fn toolq(says: &str) -> Toolq {
    Toolq::new().tools(&file(says)).file("said", said())
}

fn calls() -> String {
    response(&[
        ("say", json!({"x": "hello"})),
        ("say", json!({"y": 1})),
        ("say", json!({"x": "you"})),
        ("other", json!({})),
    ])
}

#[test]
fn what_it_says_holds_and_it_is_asked_once() {
    let ran = toolq(WELL).stdin(calls()).run(&["run"]).exits(0);
    let texts = ran.texts();
    assert_eq!(texts[0], ("hello".to_owned(), false));
    assert!(texts[1].1 && texts[1].0.contains('x'), "{}", texts[1].0);
    assert_eq!(texts[2], ("you".to_owned(), false));
    // With the tool's variables, but for those that come with a call.
    assert_eq!(ran.file("asked").unwrap(), "me\n");
}

#[test]
fn a_plan_asks_only_where_it_is_told_to() {
    let plan = |flags: &[&str]| {
        let arguments = [&["plan", "--format", "json"], flags].concat();
        toolq(WELL).stdin(calls()).run(&arguments).exits(0)
    };
    let silent = plan(&[]);
    assert_eq!(silent.file("asked"), None);
    assert!(
        silent.stderr.contains("any input is taken for say"),
        "{}",
        silent.stderr
    );
    let asked = plan(&["--describe"]);
    assert_eq!(asked.file("asked").unwrap(), "me\n");
    let rejected = asked.json()["rejected"].clone();
    assert_eq!(rejected[0]["position"], 1);
    let path = &rejected[0]["details"][0]["path"];
    assert_eq!(path, "/x", "{rejected}");
    assert_eq!(asked.stderr, "");
    let checked = toolq(WELL).run(&["check"]).exits(0);
    assert_eq!(checked.file("asked"), None);
}

#[test]
fn a_model_is_told_what_it_said() {
    let ran = toolq(WELL).run(&["tools"]).exits(0);
    let declared = ran.json();
    assert_eq!(declared[0]["description"], "Says x.");
    assert_eq!(declared[0]["input_schema"]["required"], json!(["x"]));
    assert_eq!(declared[1]["name"], "other");
    let silent = toolq("exit 3").run(&["tools"]).exits(2);
    assert_eq!(silent.stdout, "");
    assert!(silent.stderr.contains("Exit code 3"), "{}", silent.stderr);
}

/// What it prints is anybody's: its calls are answered without being run, and those of other tools run.
#[test]
fn what_says_nothing_of_use_is_not_called() {
    let cases = [
        ("exit 3", "3"),
        ("echo hello", "what it prints is no"),
        ("echo []", "what it prints is no"),
        ("yes | head -c 300000", "prints more than 256 KiB"),
        ("sleep 60", "timed out"),
        (
            "echo \"{\\\"input_schema\\\": {\\\"type\\\": 3}}\"",
            "can't be used",
        ),
        (
            "echo \"{\\\"input_schema\\\": {\\\"type\\\": \\\"array\\\"}}\"",
            "does not say",
        ),
        (
            "echo \"{\\\"input_schema\\\": {\\\"type\\\": \\\"object\\\", \\\"\\$ref\\\": \\\"http://127.0.0.1/a\\\"}}\"",
            "can't be used",
        ),
    ];
    for (says, why) in cases {
        let tools = match says {
            "sleep 60" => file(says).replace("timeout: 20s", "timeout: {after: 1s, grace: 100ms}"),
            _ => file(says),
        };
        let ran = Toolq::new()
            .tools(&tools)
            .stdin(calls())
            .run(&["run"])
            .exits(0);
        let texts = ran.texts();
        for (text, is_error) in &texts[..3] {
            assert!(is_error, "{says}: {text}");
            assert!(
                text.contains("could not describe what it takes"),
                "{says}: {text}"
            );
        }
        assert!(texts[0].0.contains(why), "{says}: {}", texts[0].0);
        assert_eq!(texts[3], ("here".to_owned(), false), "{says}");
        assert!(
            ran.stderr.contains("say could not describe itself"),
            "{says}"
        );
    }
}

#[test]
fn one_of_both_says_what_a_tool_takes() {
    let both = file(WELL).replace(
        "    timeout: 20s\n",
        "    timeout: 20s\n    input_schema: {type: object}\n",
    );
    let ran = Toolq::new().tools(&both).run(&["check"]).exits(1);
    assert!(ran.stderr.contains("both `input_schema` and `describe`"));
    let with_input = file(WELL).replace("cat said'", "cat said', sh, \"{x}\"");
    let ran = Toolq::new().tools(&with_input).run(&["check"]).exits(1);
    assert!(
        ran.stderr.contains("`x`") || ran.stderr.contains("{x}"),
        "{}",
        ran.stderr
    );
}
