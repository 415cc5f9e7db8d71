//! `{"type":"reload"}`: tools.yaml is read again between turns.

use std::fs;

use serde_json::json;

use crate::follow_control::host::Host;

fn tools(text: &str, more: &str) -> String {
    format!(
        "version: 1\ntools:\n  say: {{input_schema: {{type: object}}, effect: read, command: [echo, {text}]}}\n{more}"
    )
}

#[test]
fn new_definitions_come_into_force_between_turns() {
    let mut host = Host::start(&tools("one", ""), &[]);
    host.announce(json!({"wait": {"effect": "read"}}));
    host.turn("old", &[("wait", json!({})), ("say", json!({}))]);
    let call = host.read_type("call");
    let more = "  new: {input_schema: {type: object}, effect: read, command: [echo, new]}\n";
    let path = host.dir.join("tools.yaml");
    fs::write(&path, tools("two", more)).unwrap();
    // A file that was only written changes nothing.
    host.turn("same", &[("say", json!({}))]);
    assert_eq!(host.read_type("answer")["message"][0]["content"], "one");
    host.send(r#"{"type":"reload","id":"r"}"#);
    let ready =
        json!({"type": "ready", "added": ["new"], "removed": [], "changed": ["say"], "id": "r"});
    assert_eq!(host.read(), ready);
    host.turn("new", &[("say", json!({})), ("new", json!({}))]);
    let answer = host.read_type("answer");
    assert_eq!(answer["message"][0]["content"], "two");
    assert_eq!(answer["message"][1]["content"], "new");
    host.answer_call(&call, &json!("waited"));
    let answer = host.read_type("answer");
    assert_eq!(answer["message"][0]["content"], "waited");
    assert_eq!(answer["message"][1]["content"], "one");
    assert_eq!(host.end().code, 0);
}

#[test]
fn a_broken_file_changes_nothing() {
    let mut host = Host::start(&tools("one", ""), &[]);
    host.announce(json!({"mine": {"effect": "read"}}));
    let path = host.dir.join("tools.yaml");
    for (text, words, line) in [
        (
            tools(
                "two",
                "  bad: {input_schema: {type: object}, command: [echo], timeout: soon}\n",
            ),
            "soon",
            json!(4),
        ),
        (
            tools(
                "two",
                "  mine: {input_schema: {type: object}, command: [echo]}\n",
            ),
            "declared in tools.yaml, too",
            json!(null),
        ),
        (
            tools("two", "concurrency: 3\n"),
            "`concurrency` can't change",
            json!(null),
        ),
        ("tools: [".to_owned(), "tools.yaml", json!(1)),
    ] {
        fs::write(&path, text).unwrap();
        host.send(r#"{"type":"reload"}"#);
        let error = host.read_type("error");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
        assert!(
            message.ends_with("; the tools stay as they were"),
            "{message}"
        );
        assert_eq!(error["error"]["problems"][0]["line"], line, "{error}");
    }
    host.turn("a", &[("say", json!({})), ("mine", json!({}))]);
    let call = host.read_type("call");
    host.answer_call(&call, &json!("mine"));
    let answer = host.read_type("answer");
    assert_eq!(answer["message"][0]["content"], "one");
    assert_eq!(answer["message"][1]["content"], "mine");
    assert_eq!(host.end().code, 3);
}
