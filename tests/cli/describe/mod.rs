//! Tools that describe themselves: when `describe` runs, what it may print, and what the session log records of it.

mod describe_records;
mod describe_timing;

use crate::support::{CliSandbox, model_response};
use serde_json::json;

/// Returns a tools.yaml with `say`, whose `describe` appends a line to the file `described` and then runs
/// `describe_script`, and `other`, which has a schema.
fn describe_tools_file(describe_script: &str) -> String {
    format!(
        r#"version: 1
tools:
  say:
    describe: [sh, -c, 'echo "$LABEL" >> described; {describe_script}']
    timeout: 20s
    effect: read
    command: {{argv: [printf, "%s", "{{x}}"], env: {{LABEL: say, X: "{{x}}"}}}}
  other:
    input_schema: {{type: object}}
    effect: read
    command: [echo, here]
"#
    )
}

/// A `describe_script` that prints [`description_json`].
const PRINT_DESCRIPTION: &str = "cat description.json";

fn description_json() -> String {
    let schema =
        json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]});
    json!({"description": "Says x.", "input_schema": schema}).to_string()
}

fn toolq(describe_script: &str) -> CliSandbox {
    CliSandbox::new()
        .tools(&describe_tools_file(describe_script))
        .file("description.json", description_json())
}

fn calls_input() -> String {
    model_response(&[
        ("say", json!({"x": "hello"})),
        ("say", json!({"y": 1})),
        ("say", json!({"x": "you"})),
        ("other", json!({})),
    ])
}

#[test]
fn inputs_are_checked_by_a_description_obtained_once() {
    let ran = toolq(PRINT_DESCRIPTION)
        .stdin(calls_input())
        .run(&["run"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts[0], ("hello".to_owned(), false));
    assert!(texts[1].1 && texts[1].0.contains('x'), "{}", texts[1].0);
    assert_eq!(texts[2], ("you".to_owned(), false));
    // `describe` gets the tool's variables, except those that a call's input fills.
    assert_eq!(ran.file("described").unwrap(), "say\n");
}

#[test]
fn a_plan_describes_only_with_the_flag() {
    let plan = |flags: &[&str]| {
        let arguments = [&["plan", "--format", "json"], flags].concat();
        toolq(PRINT_DESCRIPTION)
            .stdin(calls_input())
            .run(&arguments)
            .assert_exit(0)
    };
    let without_flag = plan(&[]);
    assert_eq!(without_flag.file("described"), None);
    assert!(
        without_flag
            .stderr
            .contains("any input is accepted for say"),
        "{}",
        without_flag.stderr
    );
    let described = plan(&["--describe"]);
    assert_eq!(described.file("described").unwrap(), "say\n");
    let rejected = described.json()["rejected"].clone();
    assert_eq!(rejected[0]["position"], 1);
    let path = &rejected[0]["details"][0]["path"];
    assert_eq!(path, "/x", "{rejected}");
    assert_eq!(described.stderr, "");
    let checked = toolq(PRINT_DESCRIPTION).run(&["check"]).assert_exit(0);
    assert_eq!(checked.file("described"), None);
}

#[test]
fn declarations_have_the_description() {
    let ran = toolq(PRINT_DESCRIPTION).run(&["tools"]).assert_exit(0);
    let declared = ran.json();
    assert_eq!(declared[0]["description"], "Says x.");
    assert_eq!(declared[0]["input_schema"]["required"], json!(["x"]));
    assert_eq!(declared[1]["name"], "other");
    let failed = toolq("exit 3").run(&["tools"]).assert_exit(2);
    assert_eq!(failed.stdout, "");
    assert!(failed.stderr.contains("Exit code 3"), "{}", failed.stderr);
}

/// `describe` may print anything. If its output can't be used, the tool's calls get an error without running; other tools
/// aren't affected.
#[test]
fn calls_of_a_tool_with_a_bad_description_do_not_run() {
    let cases = [
        ("exit 3", "3"),
        ("echo hello", "its output isn't"),
        ("echo []", "its output isn't"),
        ("yes | head -c 300000", "its output is larger than 256 KiB"),
        ("sleep 60", "timed out"),
        (
            "echo \"{\\\"input_schema\\\": {\\\"type\\\": 3}}\"",
            "can't be used",
        ),
        (
            "echo \"{\\\"input_schema\\\": {\\\"type\\\": \\\"array\\\"}}\"",
            "doesn't have",
        ),
        (
            "echo \"{\\\"input_schema\\\": {\\\"type\\\": \\\"object\\\", \\\"\\$ref\\\": \\\"http://127.0.0.1/a\\\"}}\"",
            "can't be used",
        ),
        (
            "echo \"{\\\"input_schema\\\": {\\\"type\\\": \\\"object\\\", \\\"minProperties\\\": 18446744073709551617}}\"",
            "would lose digits: 18446744073709551617",
        ),
    ];
    for (script, expected) in cases {
        let tools = match script {
            "sleep 60" => describe_tools_file(script)
                .replace("timeout: 20s", "timeout: {after: 1s, grace: 100ms}"),
            _ => describe_tools_file(script),
        };
        let ran = CliSandbox::new()
            .tools(&tools)
            .stdin(calls_input())
            .run(&["run"])
            .assert_exit(0);
        let texts = ran.result_texts();
        for (text, is_error) in &texts[..3] {
            assert!(is_error, "{script}: {text}");
            assert!(
                text.contains("failed to describe its input"),
                "{script}: {text}"
            );
            assert!(
                text.contains("Hint: a different input won't change that."),
                "{script}: {text}"
            );
        }
        assert!(texts[0].0.contains(expected), "{script}: {}", texts[0].0);
        assert_eq!(texts[3], ("here".to_owned(), false), "{script}");
        assert!(
            ran.stderr.contains("say could not describe itself"),
            "{script}"
        );
    }
}

#[test]
fn input_schema_and_describe_exclude_each_other() {
    let both = describe_tools_file(PRINT_DESCRIPTION).replace(
        "    timeout: 20s\n",
        "    timeout: 20s\n    input_schema: {type: object}\n",
    );
    let ran = CliSandbox::new()
        .tools(&both)
        .run(&["check"])
        .assert_exit(1);
    assert!(ran.stderr.contains("both `input_schema` and `describe`"));
    let with_input = describe_tools_file(PRINT_DESCRIPTION).replace(
        "cat description.json'",
        "cat description.json', sh, \"{x}\"",
    );
    let ran = CliSandbox::new()
        .tools(&with_input)
        .run(&["check"])
        .assert_exit(1);
    assert!(
        ran.stderr.contains("`x`") || ran.stderr.contains("{x}"),
        "{}",
        ran.stderr
    );
}
