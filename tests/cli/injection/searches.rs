//! The fixtures' tools that search and read: what their programs would take for syntax is data there.

use serde_json::{Value, json};

use crate::support::{CliSandbox, model_response, repository_root};

/// Runs the calls with a tools file of the repository. There is a file `x` in its root.
fn run_fixture(tools: &str, root: &str, calls: &[(&str, Value)]) -> Vec<(String, bool)> {
    let tools = repository_root().join(tools);
    let sandbox = CliSandbox::new()
        .file(&format!("{root}/x"), "a;b\n{}\nc + d\n-n\n")
        .stdin(model_response(calls));
    let arguments = ["run", "-q", "--no-log", "-c", tools.to_str().unwrap()];
    sandbox.run(&arguments).assert_exit(0).result_texts()
}

/// `find -exec` ends at a `;`, and replaces `{}`.
#[test]
fn every_text_is_found() {
    for (tools, root, tool) in [
        ("tools.yaml", ".", "search_text"),
        (
            "fixtures/coding/tools.yaml",
            "fixtures/coding/workspace",
            "grep",
        ),
    ] {
        let calls = [";", "{}", "+", "-n", "$(c)", "c . d"]
            .map(|pattern| (tool, json!({"pattern": pattern, "path": "x"})));
        let texts = run_fixture(tools, root, &calls);
        let lines = [
            "./x:1:a;b",
            "./x:2:{}",
            "./x:3:c + d",
            "./x:4:-n",
            "(no output)",
            "./x:3:c + d",
        ];
        assert_eq!(texts, lines.map(|line| (line.to_owned(), false)), "{tool}");
    }
}

/// In a script of sed, `1e0` is an address and the command `e`, which runs the rest of the script as a program.
#[test]
fn a_line_number_is_a_number_however_it_is_written() {
    let numbers = ["2", "2.0", "2e0", "0.2e1", "20E-1"];
    let calls = numbers.map(|number| {
        let number: Value = serde_json::from_str(number).unwrap();
        (
            "file_read",
            json!({"path": "x", "offset": number, "limit": number}),
        )
    });
    let root = "fixtures/coding/workspace";
    let texts = run_fixture("fixtures/coding/tools.yaml", root, &calls);
    assert_eq!(texts, calls.map(|_| ("{}\nc + d".to_owned(), false)));
    let calls = [
        ("file_read", json!({"path": "x", "limit": 1})),
        ("file_read", json!({"path": "x", "offset": 4})),
    ];
    let texts = run_fixture("fixtures/coding/tools.yaml", root, &calls);
    assert_eq!(texts, ["a;b", "-n"].map(|line| (line.to_owned(), false)));
}
