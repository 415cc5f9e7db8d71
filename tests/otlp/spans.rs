//! The spans of an agent's run.

use std::fmt::Write as _;

use serde_json::json;

use crate::receiver::{OtlpReceiver, ReceivedSpan};
use crate::support::scripted_api::{ScriptedApi, calls_response, text_response};
use crate::support::{CliSandbox, model_response};

const TOOLS: &str = r#"
version: 1
tools:
  expert:
    input_schema: {type: object}
    effect: read
    agent: {endpoint: "${BASE}", model: model-1, tools: [look, flaky]}
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  fail: {input_schema: {type: object}, effect: read, command: [sh, -c, "exit 3"]}
  flaky:
    input_schema: {type: object}
    effect: read
    retry: {times: 1, on: ["exit:75"], backoff: 1ms}
    command: [sh, -c, "if [ -e tried ]; then exit 0; fi; touch tried; exit 75"]
"#;

/// Prints spans as a tree, with their attributes. What differs from run to run is left out.
pub fn tree(spans: &[ReceivedSpan], parent: &str, depth: usize, text: &mut String) {
    let mut children: Vec<_> = spans
        .iter()
        .filter(|span| span.parent_id == parent)
        .collect();
    // Calls that ran together began in any order.
    children.sort_by_key(|span| &span.name);
    for span in children {
        let attributes: Vec<String> = span
            .attributes
            .iter()
            .filter(|(name, _)| *name != "toolq.session.id")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let failed = if span.status == 2 { " FAILED" } else { "" };
        let indent = "  ".repeat(depth);
        let _ = writeln!(
            text,
            "{indent}{} ({}){failed} {}",
            span.name,
            span.kind,
            attributes.join(" ")
        );
        for (name, attributes) in &span.events {
            let _ = writeln!(text, "{indent}  - {name} {attributes:?}");
        }
        tree(spans, &span.span_id, depth + 1, text);
    }
}

#[test]
fn a_run_is_a_tree_of_spans() {
    let api = ScriptedApi::new(&[
        calls_response(&[("look", json!({})), ("flaky", json!({}))]),
        text_response("It is so."),
    ]);
    let receiver = OtlpReceiver::new();
    CliSandbox::new()
        .tools(TOOLS)
        .env("BASE", &api.url)
        .stdin(model_response(&[
            ("expert", json!({})),
            ("fail", json!({})),
            ("unknown", json!({})),
        ]))
        .run(&["run", "-q", "--otlp", &receiver.url])
        .assert_exit(0);
    let spans = receiver.spans();
    let mut text = String::new();
    tree(&spans, "", 0, &mut text);
    insta::assert_snapshot!(text);
    assert_eq!(
        text.lines()
            .filter(|line| !line.contains("- toolq"))
            .count(),
        spans.len()
    );
    for span in &spans {
        assert!(span.started_ns <= span.ended_ns, "{span:?}");
        assert_eq!(span.service, "toolq");
        let parent = spans.iter().find(|other| other.span_id == span.parent_id);
        if let Some(parent) = parent {
            assert!(parent.started_ns <= span.started_ns, "{span:?} {parent:?}");
            assert!(span.ended_ns <= parent.ended_ns, "{span:?} {parent:?}");
        }
    }
}

#[test]
fn a_resumed_run_has_spans_of_what_it_runs() {
    let receiver = OtlpReceiver::new();
    let ran = CliSandbox::new()
        .tools(
            r#"
version: 1
tools:
  first: {input_schema: {type: object}, effect: read, command: [echo, done]}
  second: {input_schema: {type: object}, effect: read, command: [sh, -c, "if [ ! -e again ]; then touch again; kill -9 $(cat pid); sleep 60; fi"]}
"#,
        )
        .stdin(model_response(&[("first", json!({})), ("second", json!({}))]))
        .run_shell(&format!(
            "cat > in.json; sh -c 'echo $$ > pid; exec \"$TOOLQ\" run -q -j 1 --log log.jsonl in.json > /dev/null'; \
             \"$TOOLQ\" run -q -j 1 --log log.jsonl in.json --otlp {} > /dev/null",
            receiver.url
        ))
        .assert_exit(0);
    let spans = receiver.spans();
    let count = |name: &str| spans.iter().filter(|span| span.name == name).count();
    assert_eq!(count("execute_tool first"), 0, "{spans:#?}");
    assert_eq!(count("execute_tool second"), 1);
    assert_eq!(count("toolq"), 1);
    drop(ran);
}
