//! Tools that are functions of the embedding program, and approvals by one.

use std::future::pending;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolq_embed::{ApprovalAnswer, DeclarationFormat, Error, ToolCall, ToolOutput, Toolq};

use crate::support::examples::find_example;

const ANY: &str = r#"{"effect": "read", "input_schema": {"type": "object"}}"#;

/// Counts how often it was dropped.
struct CountDrop(Arc<AtomicU32>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn message(calls: &[(&str, Value)]) -> String {
    let blocks = calls.iter().enumerate().map(
        |(at, (name, input))| json!({"type": "tool_use", "id": format!("t{at}"), "name": name, "input": input}),
    );
    json!({"role": "assistant", "content": blocks.collect::<Vec<_>>()}).to_string()
}

#[tokio::test]
async fn functions_are_tools_like_any_others() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("tools.yaml");
    let root = dir.path().display();
    let tools = format!(
        "version: 1\nroot: {root}\ntools:\n  look: {{input_schema: {{type: object}}, effect: read, command: [echo, seen]}}\n"
    );
    std::fs::write(&file, tools).unwrap();
    let log = dir.path().join("log.jsonl");
    let add = r#"{"effect": "read", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}"#;
    let toolq = Toolq::builder()
        .tools_file(&file)
        .log(&log)
        .tool("add", add, |call: ToolCall| async move {
            let input: Value = serde_json::from_str(&call.input).unwrap();
            Ok::<_, String>((input["a"].as_i64().unwrap() + 1).to_string())
        })
        .tool("fail", ANY, |_| async {
            Err::<String, _>("no luck".to_owned())
        })
        .tool("blocks", ANY, |_| async {
            let blocks = json!([{"type": "text", "text": "a block"}]);
            Ok::<_, String>(ToolOutput::Json(blocks.to_string()))
        })
        .build()
        .unwrap();
    let calls = message(&[
        ("add", json!({"a": "41"})),
        ("add", json!({})),
        ("fail", json!({})),
        ("look", json!({})),
        ("blocks", json!({})),
    ]);
    let reply = toolq.answer(calls).await.unwrap();
    let statuses: Vec<&str> = reply
        .results
        .iter()
        .map(|result| result.status.as_str())
        .collect();
    assert_eq!(statuses, ["ok", "invalid_input", "failed", "ok", "ok"]);
    assert_eq!(reply.results[0].text, "42");
    assert!(
        reply.results[2].text.contains("no luck"),
        "{}",
        reply.results[2].text
    );
    assert_eq!(reply.results[4].text, "a block");
    let declarations = toolq
        .declarations(DeclarationFormat::Anthropic)
        .await
        .unwrap();
    let declarations: Value = serde_json::from_str(&declarations).unwrap();
    assert_eq!(declarations.as_array().unwrap().len(), 4);
    toolq.close().unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.matches(r#""type":"tool_start""#).count(), 4, "{log}");
}

/// A function that doesn't come to an end is dropped after its timeout.
#[tokio::test]
async fn a_function_that_hangs_is_answered() {
    let dropped = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&dropped);
    let keys = r#"{"timeout": "50ms", "input_schema": {"type": "object"}}"#;
    let toolq = Toolq::builder()
        .tool("hang", keys, move |_| {
            let guard = CountDrop(Arc::clone(&count));
            async move {
                let _guard = guard;
                pending::<Result<String, String>>().await
            }
        })
        .tool("panic", ANY, |_| async {
            assert!(std::env::args().len() > 100_000, "panics on purpose");
            Ok::<_, String>("never")
        })
        .build()
        .unwrap();
    let reply = toolq
        .answer(message(&[("panic", json!({})), ("hang", json!({}))]))
        .await
        .unwrap();
    let statuses: Vec<&str> = reply
        .results
        .iter()
        .map(|result| result.status.as_str())
        .collect();
    assert_eq!(statuses, ["internal_error", "in_doubt"]);
    let text = &reply.results[0].text;
    assert!(text.contains("panics on purpose"), "{text}");
    assert_eq!(dropped.load(SeqCst), 1);
}

#[tokio::test]
async fn a_function_approves_calls() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let questions = Arc::clone(&asked);
    let keys = r#"{"approve": true, "input_schema": {"type": "object"}}"#;
    let paid = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&paid);
    let toolq = Toolq::builder()
        .tool("pay", keys, move |_| {
            count.fetch_add(1, SeqCst);
            async { Ok::<_, String>("paid") }
        })
        .approve(move |question| {
            questions.lock().unwrap().push(question.tool_use_id.clone());
            let question: Value = serde_json::from_str(&question.json).unwrap();
            async move {
                if question["input"]["amount"] == 5 {
                    ApprovalAnswer::Yes
                } else {
                    let reason = Some("too much".to_owned());
                    ApprovalAnswer::No { reason }
                }
            }
        })
        .build()
        .unwrap();
    let calls = message(&[
        ("pay", json!({"amount": 5})),
        ("pay", json!({"amount": 900})),
    ]);
    let reply = toolq.answer(calls).await.unwrap();
    let statuses: Vec<&str> = reply
        .results
        .iter()
        .map(|result| result.status.as_str())
        .collect();
    assert_eq!(statuses, ["ok", "denied"]);
    assert!(
        reply.results[1].text.contains("too much"),
        "{}",
        reply.results[1].text
    );
    assert_eq!(*asked.lock().unwrap(), ["t0", "t1"]);
    assert_eq!(paid.load(SeqCst), 1);
}

#[test]
fn functions_with_wrong_keys_are_an_error_that_says_where() {
    for (keys, words) in [
        (
            "timeout: 5s",
            "tool a: the keys of the tool aren't a JSON object",
        ),
        (
            r#"{"timeout": "soon", "input_schema": {"type": "object"}}"#,
            "tool a/timeout: ",
        ),
        ("{}", "tool a: "),
    ] {
        let builder = Toolq::builder().tool("a", keys, |_| async { Ok::<_, String>("") });
        let error = builder.build().err().unwrap();
        assert!(matches!(error, Error::InvalidFunctions(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(matches!(Toolq::builder().build(), Err(Error::NoToolsFile)));
}

#[test]
fn the_example_answers_its_message() {
    let output = Command::new(find_example("functions")).output().unwrap();
    assert!(output.status.success());
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let texts: Vec<&str> = reply["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts[..2], ["Rain, 7 °C", "paid: {\"amount\": 5}"]);
    assert!(texts[2].contains("too much"), "{texts:?}");
}
