//! Calls of different clients: reads run together, a write runs alone.

use serde_json::json;

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, legacy, modern, text_of};

#[test]
fn reads_of_all_clients_run_together() {
    let server = HttpServer::start(&["-q"]);
    let meet = |me: &str, other: &str| call("meet", &json!({"me": me, "other": other}));
    let mut session = server.initialize("2025-11-25");
    let request = session.post(&legacy(1, "tools/call", &meet("a", "b")));
    session.client.send(&request);
    let modern = server.ask(&HttpRequest::post(&modern(
        1,
        "tools/call",
        &meet("b", "a"),
    )));
    assert_eq!(text_of(&modern.json()), "met");
    assert_eq!(text_of(&session.client.read_response().json()), "met");
}

#[test]
fn a_write_runs_alone() {
    let server = HttpServer::start(&[]);
    let mut writer = server.connect();
    let pay = modern(1, "tools/call", &call("pay", &json!({"file": "go"})));
    writer.send(&HttpRequest::post(&pay));
    server.pids(1);
    let mut session = server.initialize("2025-03-26");
    let read = |id: u64| legacy(id, "tools/call", &call("wait_for", &json!({"file": "go"})));
    let mut invalid = legacy(4, "tools/call", &call("echo", &json!({})));
    invalid["params"]["_meta"] = json!({"progressToken": 4});
    let batch = session.post(&json!([read(1), read(2), read(3), invalid]));
    session.client.send(&batch);
    assert_eq!(session.client.read_head().status, 200);
    // It needs no turn, and is answered once the reads have arrived.
    let first = session.client.read_event().unwrap();
    assert_eq!(first["id"], 4);
    server.create("go");
    assert_eq!(text_of(&writer.read_response().json()), "paid go");
    for _ in 0..3 {
        let answer = session.client.read_event().unwrap();
        assert_eq!(text_of(&answer), "found go");
    }
    assert_eq!(session.client.read_event(), None);
    // No read began while the write ran.
    let log = server.end().log();
    let find = |kind: &str, tool: &str| {
        log.iter()
            .position(|record| record["type"] == kind && record["metadata"]["tool_name"] == tool)
            .unwrap()
    };
    assert!(find("tool_result", "pay") < find("tool_start", "wait_for"));
}
