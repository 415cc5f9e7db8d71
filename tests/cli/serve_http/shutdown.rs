//! The end of a server while clients are connected.

use rustix::process::Signal;
use serde_json::json;

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, legacy, modern, text_of, wait_until_gone};

/// Nothing is left.
#[test]
fn a_signal_ends_the_server_and_every_call_is_answered() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let server = HttpServer::start(&[]);
        let mut idle = server.connect();
        idle.ask(&HttpRequest::post(&modern(1, "tools/list", &json!({}))));
        let mut params = call("wait_for", &json!({"file": "never"}));
        let whole = HttpRequest::post(&modern(1, "tools/call", &params));
        params["_meta"]["progressToken"] = json!(1);
        let stream = HttpRequest::post(&modern(2, "tools/call", &params));
        let mut session = server.initialize("2025-11-25");
        let pay = legacy(3, "tools/call", &call("pay", &json!({"file": "never"})));
        let pay = session.post(&pay);
        let (mut one, mut other) = (server.connect(), server.connect());
        one.send(&whole);
        other.send(&stream);
        let pids = server.pids(2);
        // It waits for the reads, and never starts.
        session.client.send(&pay);
        server.signal(signal);
        let answer = one.read_response().json();
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(other.read_head().status, 200);
        let mut events = std::iter::from_fn(|| other.read_event());
        let answer = events.find(|message| message["id"] == 2).unwrap();
        assert_eq!(answer["result"]["_meta"]["dev.toolq/status"], "interrupted");
        assert!(idle.is_closed());
        let ended = server.wait();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        wait_until_gone(&pids);
        let log = ended.log();
        assert_eq!(log.last().unwrap()["type"], "session_end");
    }
}

#[test]
fn the_answer_that_is_on_its_way_arrives() {
    let server = HttpServer::start(&[]);
    let mut client = server.connect();
    let work = modern(1, "tools/call", &call("work", &json!({})));
    client.send(&HttpRequest::post(&work));
    server.create("go");
    assert_eq!(text_of(&client.read_response().json()), "done");
    assert_eq!(server.end().code, Some(143));
}
