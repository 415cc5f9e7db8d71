//! `cache`: results of `read` tools that answer later calls with the same input.

use crate::support::{CliSandbox, model_response};
use serde_json::{Value, json};

/// `look` prints how often it ran. Reads don't share a batch here, so the second one comes after the first.
const TOOLS: &str = r"
version: 1
tools:
  look:
    effect: read
    concurrency_safe: false
    cache: {for: 10m}
    input_schema: {type: object, properties: {x: {type: string}}}
    command: [sh, -c, 'echo look >> ran; cat ran | wc -l; test ! -e broken']
  edit:
    effect: idempotent
    input_schema: {type: object}
    command: [echo, edited]
  large:
    effect: read
    concurrency_safe: false
    cache: {for: 10m}
    max_output: 1KiB
    input_schema: {type: object}
    command: [sh, -c, 'echo large >> ran; cat ran | wc -l; seq 10000']
";

fn run(tools: &str, calls: &[(&str, Value)]) -> (Vec<String>, crate::support::CliOutput) {
    let sandbox = CliSandbox::new().tools(tools);
    let output = sandbox.stdin(model_response(calls)).run(&["run"]);
    let texts = output.result_texts();
    (texts.into_iter().map(|(text, _)| text).collect(), output)
}

#[test]
fn the_same_input_is_answered_from_memory_until_something_may_have_changed() {
    let (x, y) = (json!({"x": "1"}), json!({"x": "2"}));
    let calls = [
        ("look", x.clone()),
        ("look", x.clone()),
        ("look", y),
        ("edit", json!({})),
        ("look", x.clone()),
        ("look", x),
    ];
    let (texts, output) = run(TOOLS, &calls);
    assert_eq!(texts, ["1", "1", "2", "edited", "3", "3"]);
    let records = output.log_records();
    let of_type = |kind: &str| -> Vec<&Value> {
        let records = records.iter();
        records.filter(|record| record["type"] == kind).collect()
    };
    assert_eq!(of_type("tool_call").len(), 6);
    assert_eq!(of_type("tool_start").len(), 4);
    let results = of_type("tool_result");
    assert_eq!(results.len(), 6);
    let cached: Vec<&str> = results
        .iter()
        .filter_map(|result| result["metadata"]["cached"]["tool_use_id"].as_str())
        .collect();
    assert_eq!(cached, ["toolu_0", "toolu_4"]);
    assert_eq!(results[1]["metadata"]["attempts"], 0);
    assert!(results[1]["metadata"]["cached"]["age_ms"].is_u64());
}

/// Others rely on the log: it is in order, and its statistics are right.
#[test]
fn the_log_of_a_cached_call_is_sound() {
    let calls = [("look", json!({})), ("look", json!({}))];
    let script = r#"
        "$TOOLQ" run --to result-lines --log log.jsonl turn.json > out || exit
        jq -r 'has("cached_age_ms")' out
        "$TOOLQ" log verify log.jsonl > /dev/null || echo WRONG
        "$TOOLQ" log stats --format json log.jsonl | jq -c '.tools[0] | [.runs, .successes, .rejected]'
    "#;
    let output = CliSandbox::new()
        .tools(TOOLS)
        .file("turn.json", model_response(&calls))
        .run_shell(script);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let expected = ["false", "true", "[2,2,0]"];
    assert_eq!(lines, expected, "{}", output.stderr);
}

#[test]
fn errors_and_cut_outputs_are_not_kept() {
    let tools = TOOLS.replace("test ! -e broken", "false");
    let calls = [("look", json!({})), ("look", json!({}))];
    let (texts, _) = run(&tools, &calls);
    assert!(
        texts[0].contains('1') && texts[1].contains('2'),
        "{texts:?}"
    );
    let calls = [("large", json!({})), ("large", json!({}))];
    let (texts, _) = run(TOOLS, &calls);
    assert!(
        texts[0].starts_with("1\n") && texts[1].starts_with("2\n"),
        "{texts:?}"
    );
}

/// A yes counts for one call, whether it runs or not.
#[test]
fn a_cached_call_needs_its_approval() {
    let tools = TOOLS.replace(
        "cache: {for: 10m}\n",
        "cache: {for: 10m}\n    approve: true\n",
    );
    let calls = [("look", json!({})), ("look", json!({}))];
    let approver = "#!/bin/sh\ncat > /dev/null\ntest ! -e asked && touch asked\n";
    let sandbox = CliSandbox::new()
        .tools(&tools)
        .program("approver", approver);
    let sandbox = sandbox.stdin(model_response(&calls));
    let output = sandbox.run(&["run", "--approve-with", "./approver"]);
    let texts = output.result_texts();
    assert_eq!((texts[0].0.as_str(), texts[0].1), ("1", false));
    assert!(texts[1].1, "{texts:?}");
}

/// What an agent or another turn has read counts, and a budget of calls is for those that run.
#[test]
fn turns_share_the_cache_and_budgets_count_what_runs() {
    let line = model_response(&[("look", json!({}))]);
    let lines = format!("{line}\n{line}\n{line}\n");
    let sandbox = CliSandbox::new().tools(TOOLS).stdin(lines);
    let output = sandbox.run(&["run", "--follow", "--max-calls", "1"]);
    let texts: Vec<Value> = output.lines();
    let texts: Vec<&str> = texts
        .iter()
        .map(|message| message["content"][0]["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["1", "1", "1"], "{}", output.stderr);
}

/// An edit removes what was read from its file, regardless of the path that was used, and nothing else.
#[test]
fn with_locks_an_edit_removes_only_what_it_meets() {
    let tools = r#"
version: 1
tools:
  look:
    effect: read
    cache: {for: 10m}
    locks: {read: ["file:{path}"]}
    paths: [path]
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    command: [cat, --, "{path}"]
  edit:
    locks: {write: ["file:{path}"]}
    paths: [path]
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    command: {argv: [tee, -a, --, "{path}"], stdin: x}
"#;
    let file = |path: &str| json!({"path": path});
    let calls = [
        ("look", file("a")),
        ("look", file("b")),
        ("edit", file("a")),
        ("look", file("a")),
        ("look", file("b")),
        // The same file by another name.
        ("edit", file("link")),
        ("look", file("a")),
        ("look", file("b")),
    ];
    let sandbox = CliSandbox::new().tools(tools).file("a", "a").file("b", "b");
    let sandbox = sandbox.file("turn.json", model_response(&calls));
    let output = sandbox.run_shell(
        r#"ln -s b link; "$TOOLQ" run -j 1 --to result-lines turn.json | jq -r '[.content, has("cached_age_ms")] | @csv'"#,
    );
    let lines: Vec<&str> = output.stdout.lines().collect();
    let looks = [0, 1, 3, 4, 6, 7].map(|number| lines[number]);
    let expected = [
        r#""a",false"#,
        r#""b",false"#,
        r#""ax",false"#,
        r#""b",true"#,
        r#""ax",true"#,
        r#""bx",false"#,
    ];
    assert_eq!(looks, expected, "{}", output.stderr);
}
