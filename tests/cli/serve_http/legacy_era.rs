//! Revisions up to 2025-11-25: a session that begins with `initialize`.

use serde_json::{Value, json};

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, is_running, legacy, text_of, wait_until};

fn list(id: u64) -> Value {
    legacy(id, "tools/list", &json!({}))
}

#[test]
fn a_client_greets_lists_calls_and_leaves() {
    let server = HttpServer::start(&[]);
    let mut session = server.initialize("2025-11-25");
    assert!(session.id.len() >= 32 && session.id.bytes().all(|byte| byte.is_ascii_graphic()));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let response = session.ask(&initialized);
    assert_eq!((response.status, response.body.as_str()), (202, ""));
    let listed = session.ask(&list(1)).json();
    assert_eq!(listed["result"]["tools"][0]["name"], "echo");
    assert!(listed["result"].get("resultType").is_none());
    let request = session.post(&legacy(
        2,
        "tools/call",
        &call("echo", &json!({"text": "hi"})),
    ));
    // Any connection will do.
    let request = request.with("mcp-protocol-version", "2025-11-25");
    assert_eq!(text_of(&server.ask(&request).json()), "hi");
    let unknown = session.ask(&legacy(3, "prompts/list", &json!({})));
    unknown.assert_error(200, -32601);
    let delete = HttpRequest::bare("DELETE").with("mcp-session-id", &session.id);
    assert_eq!(server.ask(&delete).status, 204);
    assert_eq!(server.ask(&delete).status, 404);
    session.ask(&list(4)).assert_error(404, -32600);
    assert_eq!(server.end().statuses(), ["ok"]);
}

#[test]
fn without_a_session_nothing_is_done() {
    let server = HttpServer::start(&[]);
    let request = HttpRequest::post(&list(1));
    server.ask(&request).assert_error(400, -32602);
    let unknown = request.with("mcp-session-id", "0123456789abcdef");
    server.ask(&unknown).assert_error(404, -32600);
    let session = server.initialize("2025-06-18");
    let dated = session
        .post(&list(1))
        .with("mcp-protocol-version", "1999-01-01");
    server.ask(&dated).assert_error(400, -32022);
    let without_version = legacy(1, "initialize", &json!({"capabilities": {}}));
    let refused = server.ask(&HttpRequest::post(&without_version));
    refused.assert_error(200, -32602);
    assert_eq!(refused.header("mcp-session-id"), None);
}

#[test]
fn sessions_are_apart() {
    let server = HttpServer::start(&[]);
    let (mut one, mut other) = (
        server.initialize("2025-11-25"),
        server.initialize("2024-11-05"),
    );
    // Both use the same id, and neither can cancel the other's call.
    let wait = legacy(1, "tools/call", &call("wait_for", &json!({"file": "go"})));
    one.client.send(&one.post(&wait));
    other.client.send(&other.post(&wait));
    let pids = server.pids(2);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(server.ask(&one.post(&cancel)).status, 202);
    let canceled = one.client.read_response();
    assert_eq!((canceled.status, canceled.body.as_str()), (202, ""));
    wait_until("the canceled call has ended", || {
        !pids.iter().all(|pid| is_running(pid))
    });
    server.create("go");
    assert_eq!(text_of(&other.client.read_response().json()), "found go");
    let mut statuses = server.end().statuses();
    statuses.sort();
    assert_eq!(statuses, ["interrupted", "ok"]);
}

/// A turn has one call, so each call of a batch is a turn. A write waits for the reads before it.
#[test]
fn only_2025_03_26_has_batches() {
    let server = HttpServer::start(&[]);
    let mut session = server.initialize("2025-03-26");
    let echo =
        |id: u64, text: &str| legacy(id, "tools/call", &call("echo", &json!({"text": text})));
    server.create("now");
    let pay = legacy(2, "tools/call", &call("pay", &json!({"file": "now"})));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = json!([echo(1, "a"), initialized, pay, echo(3, "c"), list(4)]);
    let answers = session.ask(&batch).json();
    let mut ids: Vec<u64> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!(session.ask(&json!([initialized])).status, 202);
    let mut later = server.initialize("2025-11-25");
    later.ask(&batch).assert_error(400, -32600);
    assert_eq!(server.end().statuses(), ["ok", "ok", "ok"]);
}
