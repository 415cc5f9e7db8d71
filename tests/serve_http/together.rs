//! Calls of different clients: reads run together, a write runs alone.

use std::thread;

use serde_json::json;

use crate::http_client::HttpRequest;
use crate::http_server::HttpServer;
use crate::{call, legacy, modern, text_of};

#[test]
fn reads_of_all_clients_run_together() {
    let server = HttpServer::start(&[]);
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
    let calls = thread::scope(|scope| {
        let reads: Vec<_> = (0..4)
            .map(|number| {
                let server = &server;
                scope.spawn(move || server.call("echo", &json!({"text": number.to_string()})))
            })
            .collect();
        server.create("go");
        assert_eq!(text_of(&writer.read_response().json()), "paid go");
        reads
            .into_iter()
            .map(|read| read.join().unwrap())
            .collect::<Vec<_>>()
    });
    for (number, response) in calls.iter().enumerate() {
        assert_eq!(text_of(&response.json()), number.to_string());
    }
    // No read began while the write ran.
    let log = server.end().log();
    let is = |kind: &str, tool: &str| {
        log.iter()
            .position(|record| record["type"] == kind && record["metadata"]["tool_name"] == tool)
            .unwrap()
    };
    assert!(is("tool_result", "pay") < is("tool_start", "echo"));
}
