//! Calls that start only after the person at the client said yes, over HTTP: other requests bring the replies.

use std::fs;

use serde_json::{Value, json};

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, legacy, modern, text_of, wait_until};
use crate::support::CliSandbox;

const TOOLS: &str = r#"
version: 1
tools:
  pay:
    input_schema: {type: object}
    approve: true
    command: [sh, -c, "echo pay >> ran; echo paid"]
  note:
    input_schema: {type: object}
    command: [sh, -c, "echo note >> ran; echo noted"]
"#;

fn start() -> HttpServer {
    HttpServer::start_in(CliSandbox::new().tools(TOOLS), &["-q"])
}

fn pay(id: u64) -> Value {
    legacy(id, "tools/call", &call("pay", &json!({})))
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

/// The question comes in the response to the call, and the reply in a request of its own. Meanwhile, other calls continue.
#[test]
fn a_session_that_can_ask_is_asked_within_its_call() {
    let server = start();
    let mut session = server.initialize_with("2025-11-25", &json!({"elicitation": {}}));
    let request = session.post(&pay(1));
    session.client.send(&request);
    assert_eq!(session.client.read_head().status, 200);
    let question = session.client.read_event().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let note = legacy(1, "tools/call", &call("note", &json!({})));
    let mut other = server.initialize("2025-11-25");
    assert_eq!(text_of(&other.ask(&note).json()), "noted");
    // Another client can't say yes.
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()});
    assert_eq!(other.ask(&reply).status, 202);
    assert_eq!(text_of(&other.ask(&note).json()), "noted");
    let reply = session.post(&reply);
    assert_eq!(server.ask(&reply).status, 202);
    let answer = session.client.read_event().unwrap();
    assert_eq!(text_of(&answer), "paid");
    assert_eq!(session.client.read_event(), None);
    let ended = server.end();
    assert_eq!(ended.file("ran"), "note\nnote\npay\n");
    let log = ended.log();
    let approvals = log.iter().filter(|record| record["type"] == "approval");
    let clients: Vec<&Value> = approvals
        .map(|record| &record["metadata"]["client"])
        .collect();
    assert_eq!(clients, [&json!("t")]);
}

#[test]
fn a_session_that_cannot_be_asked_is_told_that_an_approval_is_needed() {
    let server = start();
    let mut session = server.initialize("2025-11-25");
    let answer = session.ask(&pay(1)).json();
    assert!(text_of(&answer).contains("needs an approval"), "{answer}");
    // A client that takes no events can't get a question either.
    let mut session = server.initialize_with("2025-11-25", &json!({"elicitation": {}}));
    let request = session.post(&pay(1)).with("accept", "application/json");
    let answer = session.client.ask(&request).json();
    assert!(text_of(&answer).contains("needs an approval"), "{answer}");
    assert_eq!(server.end().file("ran"), "");
}

/// A later yes starts nothing either.
#[test]
fn a_client_that_disconnects_at_a_question_runs_nothing() {
    let server = start();
    let mut session = server.initialize_with("2025-11-25", &json!({"elicitation": {}}));
    let request = session.post(&pay(1));
    let mut connection = server.connect();
    connection.send(&request);
    connection.read_head();
    let question = connection.read_event().unwrap();
    drop(connection);
    wait_until("the call has ended", || {
        let state = server.dir().join("state/toolq/sessions");
        let mut logs = fs::read_dir(state)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        logs.any(|log| {
            fs::read_to_string(log).is_ok_and(|log| log.contains(r#""status":"needs_approval""#))
        })
    });
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()});
    assert_eq!(session.ask(&reply).status, 202);
    assert_eq!(server.end().file("ran"), "");
}

#[test]
fn a_modern_client_makes_the_call_again_with_the_reply() {
    let server = start();
    let ask = |id: u64, members: &Value| {
        let mut message = modern(id, "tools/call", &call("pay", &json!({})));
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {}});
        for (key, value) in members.as_object().unwrap() {
            message["params"][key] = value.clone();
        }
        server.ask(&HttpRequest::post(&message)).json()
    };
    let required = ask(1, &json!({}));
    let result = &required["result"];
    assert_eq!(result["resultType"], "input_required", "{required}");
    let retry =
        json!({"inputResponses": {"approval": yes()}, "requestState": result["requestState"]});
    assert_eq!(text_of(&ask(2, &retry)), "paid");
    assert_eq!(ask(3, &retry)["result"]["resultType"], "input_required");
    let unable = modern(4, "tools/call", &call("pay", &json!({})));
    let answer = server.ask(&HttpRequest::post(&unable)).json();
    assert!(text_of(&answer).contains("needs an approval"), "{answer}");
    assert_eq!(server.end().file("ran"), "pay\n");
}
