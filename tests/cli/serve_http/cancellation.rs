//! Clients that no longer wait for a call. How they say so depends on the era.

use serde_json::json;

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, legacy, modern, text_of, wait_until_gone};

/// Since 2026-07-28, a client that is gone ends its call with all its processes.
#[test]
fn a_closed_response_cancels_a_modern_call() {
    let server = HttpServer::start(&[]);
    let mut params = call("wait_for", &json!({"file": "never"}));
    let without_stream = HttpRequest::post(&modern(1, "tools/call", &params));
    params["_meta"]["progressToken"] = json!(1);
    let with_stream = HttpRequest::post(&modern(1, "tools/call", &params));
    let mut clients = [server.connect(), server.connect()];
    clients[0].send(&without_stream);
    clients[1].send(&with_stream);
    let pids = server.pids(2);
    drop(clients);
    wait_until_gone(&pids);
    assert_eq!(server.end().statuses(), ["interrupted", "interrupted"]);
}

/// Up to 2025-11-25, the protocol lets a client come back for the answer.
#[test]
fn a_closed_response_leaves_a_legacy_call_alone() {
    let server = HttpServer::start(&[]);
    let session = server.initialize("2025-11-25");
    let pay = legacy(1, "tools/call", &call("pay", &json!({"file": "go"})));
    let mut client = server.connect();
    client.send(&session.post(&pay));
    server.pids(1);
    drop(client);
    // Another call of the session waits for it, so it still runs.
    let echo = legacy(2, "tools/call", &call("echo", &json!({"text": "after"})));
    let mut other = server.connect();
    other.send(&session.post(&echo));
    server.create("go");
    assert_eq!(text_of(&other.read_response().json()), "after");
    assert_eq!(server.end().statuses(), ["ok", "ok"]);
}

/// With all their processes.
#[test]
fn the_end_of_a_session_cancels_its_calls() {
    let server = HttpServer::start(&[]);
    let mut session = server.initialize("2025-11-25");
    let wait = legacy(
        1,
        "tools/call",
        &call("wait_for", &json!({"file": "never"})),
    );
    let request = session.post(&wait);
    session.client.send(&request);
    let pids = server.pids(1);
    let delete = HttpRequest::bare("DELETE").with("mcp-session-id", &session.id);
    assert_eq!(server.ask(&delete).status, 204);
    assert_eq!(session.client.read_response().status, 202);
    wait_until_gone(&pids);
    assert_eq!(server.end().statuses(), ["interrupted"]);
}
