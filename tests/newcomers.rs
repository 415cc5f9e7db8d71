//! What a newcomer gets wrong in tools.yaml, found by `check`, and told in the same words by the call that it breaks.
#![expect(
    clippy::unwrap_used,
    reason = "a test that can't reach its files has failed"
)]

mod support;

use serde_json::json;
use support::{Toolq, response};

/// FAULTS 70: the folder is named, not the program.
#[test]
fn a_folder_that_is_not_there() {
    let tools = |cwd: &str| {
        format!(
            "version: 1
tools:
  look:
    description: Look.
    input_schema: {{type: object}}
    command: {{argv: [pwd], cwd: {cwd}}}
"
        )
    };
    for (cwd, words) in [
        (
            "nowhere",
            "The folder `nowhere`, where this tool runs, does not exist.",
        ),
        (
            "plain",
            "The folder `plain`, where this tool runs, is no folder.",
        ),
    ] {
        let toolq = || Toolq::new().tools(&tools(cwd)).file("plain", "");
        let checked = toolq().run(&["check"]).exits(0);
        let warning = format!("there is no folder `{cwd}` in the root");
        assert!(checked.stderr.contains(&warning), "{}", checked.stderr);
        let ran = toolq()
            .stdin(response(&[("look", json!({}))]))
            .run(&["run"])
            .exits(0);
        let (text, is_error) = &ran.texts()[0];
        assert!(*is_error && text.starts_with(words), "{text}");
    }
}

/// A model is told of the parameters themselves: it can follow no reference to a file.
#[test]
fn files_of_schemas_are_told_to_a_model() {
    let toolq = || {
        Toolq::new()
            .tools(
                "version: 1
tools:
  find:
    description: Find.
    input_schema: {$ref: ./find.json}
    command: [grep, -e, \"{text}\", notes]
",
            )
            .file(
                "find.json",
                r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#,
            )
    };
    let told = toolq().run(&["tools"]).exits(0).json();
    assert_eq!(
        told[0]["input_schema"]["properties"]["text"]["type"],
        "string"
    );
    let told = toolq().run(&["tools", "--format", "markdown"]).exits(0);
    assert!(
        told.stdout.contains("- `text` (string, required)"),
        "{}",
        told.stdout
    );
}

/// What is left to do after `init --from` is told, and nothing is left out without a word.
#[test]
fn declarations_of_others_are_only_a_start() {
    let answer = json!({"result": {"nextCursor": "2", "tools": [
        {"name": "look", "description": "Look.", "inputSchema": {"type": "object"}},
        {"name": "find", "inputSchema": {"type": "object"}},
    ]}});
    let ran = Toolq::new()
        .file("mcp.json", answer.to_string())
        .run(&["init", "--from", "mcp.json"])
        .exits(0);
    assert!(ran.stderr.contains("`nextCursor`"), "{}", ran.stderr);
    let written = ran.file("tools.yaml").unwrap();
    let checked = Toolq::new().tools(&written).run(&["check"]).exits(0);
    for words in [
        "`look`, `find` have no `command`, `http` or `agent`",
        "2 tools, 1 warning",
    ] {
        assert!(checked.stderr.contains(words), "{}", checked.stderr);
    }
    let request = json!({"messages": [], "tools": [
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "look", "input_schema": {"type": "object"}},
    ]});
    let ran = Toolq::new()
        .stdin(request.to_string())
        .run(&["init", "--from", "-"])
        .exits(0);
    assert!(
        ran.stderr.contains("runs them itself: `web_search`"),
        "{}",
        ran.stderr
    );
}

/// A script beside tools.yaml is named with a slash.
#[test]
fn a_program_that_stands_beside_the_file() {
    let tools = "version: 1
tools:
  flaky:
    description: Fail now and then.
    input_schema: {type: object}
    command: [flaky.sh]
";
    let checked = Toolq::new()
        .tools(tools)
        .program("flaky.sh", "#!/bin/sh\n")
        .run(&["check"])
        .exits(0);
    assert!(
        checked.stderr.contains("write `./flaky.sh`"),
        "{}",
        checked.stderr
    );
}
