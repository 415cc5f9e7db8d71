//! tools.yaml is read again while clients are connected.

use serde_json::{Value, json};

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, legacy, modern, text_of, wait_until};
use crate::support::CliSandbox;

fn tools(word: &str, name: &str) -> String {
    format!(
        "version: 1
tools:
  {name}: {{effect: read, input_schema: {{type: object}}, command: [echo, {word}]}}
  wait_for:
    effect: read
    timeout: 100s
    input_schema: {{type: object}}
    command: [sh, -c, 'echo $$ >> pids; until [ -e go ]; do sleep 0.01; done; echo {word}']
"
    )
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Clients with and without a session get the new tools at their next request.
#[test]
fn all_clients_get_the_new_definitions() {
    let server = HttpServer::start_in(CliSandbox::new().tools(&tools("old", "early")), &[]);
    let mut session = server.initialize("2025-11-25");
    let mut waiting = server.connect();
    let wait = modern(1, "tools/call", &call("wait_for", &json!({})));
    waiting.send(&HttpRequest::post(&wait));
    server.pids(1);
    server.reload(&tools("new", "late"));
    let list = HttpRequest::post(&modern(2, "tools/list", &json!({})));
    wait_until("the new tools are listed", || {
        names(&server.ask(&list).json()) == ["late", "wait_for"]
    });
    let listed = session.ask(&legacy(3, "tools/list", &json!({}))).json();
    assert_eq!(names(&listed), ["late", "wait_for"]);
    let answer = session.ask(&legacy(4, "tools/call", &call("late", &json!({}))));
    assert_eq!(text_of(&answer.json()), "new");
    let gone = modern(5, "tools/call", &call("early", &json!({})));
    server
        .ask(&HttpRequest::post(&gone))
        .assert_error(200, -32602);
    server.create("go");
    assert_eq!(text_of(&waiting.read_response().json()), "old");
    server.reload("version: 1\ntools: {late: {}}\n");
    let answer = session.ask(&legacy(6, "tools/call", &call("late", &json!({}))));
    assert_eq!(text_of(&answer.json()), "new");
    let ended = server.end();
    assert!(ended.stderr.contains("added: late"), "{}", ended.stderr);
    let changes = ended.log();
    let mut changes = changes
        .iter()
        .filter(|record| record["type"] == "tools_change");
    assert!(changes.next().is_some() && changes.next().is_none());
}
