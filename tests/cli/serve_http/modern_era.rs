//! Revision 2026-07-28: requests have no session, and their headers repeat their bodies.

use serde_json::json;

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, modern, text_of};

#[test]
fn a_client_discovers_lists_and_calls() {
    let server = HttpServer::start(&[]);
    // One connection serves any number of requests.
    let mut client = server.connect();
    let discover = HttpRequest::post(&modern("d", "server/discover", &json!({})));
    let discovered = client.ask(&discover);
    assert_eq!(discovered.status, 200);
    assert_eq!(discovered.header("mcp-session-id"), None);
    assert_eq!(discovered.json()["id"], "d");
    let listed = client.ask(&HttpRequest::post(&modern(1, "tools/list", &json!({}))));
    assert_eq!(listed.json()["result"]["tools"][0]["name"], "echo");
    let params = call("echo", &json!({"text": "hi"}));
    let answer = client.ask(&HttpRequest::post(&modern(2, "tools/call", &params)));
    assert_eq!(answer.status, 200);
    assert_eq!(text_of(&answer.json()), "hi");
    let ended = server.end();
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.statuses(), ["ok"]);
}

/// What a gateway reads in the headers must be what the server does.
#[test]
fn headers_must_say_what_the_body_does() {
    let server = HttpServer::start(&[]);
    let params = call("echo", &json!({"text": "hi"}));
    let request = HttpRequest::post(&modern(7, "tools/call", &params));
    for request in [
        request.clone().without("mcp-protocol-version"),
        request.clone().with("mcp-protocol-version", "2025-11-25"),
        request.clone().without("mcp-method"),
        request.clone().with("mcp-method", "tools/list"),
        request.clone().without("mcp-name"),
        request.clone().with("mcp-name", "pay"),
        request.clone().with("mcp-name", "=?base64?*?="),
        // Two values are one that is something else.
        request.clone().with("Mcp-Name", "echo"),
    ] {
        let error = server.ask(&request).assert_error(400, -32020);
        assert_eq!(error["id"], 7);
    }
    let encoded = request.with("mcp-name", "=?base64?ZWNobw==?=");
    assert_eq!(text_of(&server.ask(&encoded).json()), "hi");
    assert_eq!(server.end().statuses(), ["ok"]);
}

/// Nothing runs that a gateway took for something else.
#[test]
fn arguments_in_headers_must_be_those_in_the_body() {
    let server = HttpServer::start(&[]);
    let post =
        |arguments| HttpRequest::post(&modern(1, "tools/call", &call("regional", &arguments)));
    let both = post(json!({"region": "Zürich", "shard": 42}))
        .with("mcp-param-region", "=?base64?WsO8cmljaA==?=")
        .with("mcp-param-shard", "42.0");
    for (request, is_served) in [
        (both.clone(), true),
        (
            both.clone()
                .with("Mcp-Param-Shard", "42")
                .without("mcp-param-shard"),
            true,
        ),
        (both.clone().without("mcp-param-shard"), false),
        (both.clone().with("mcp-param-shard", "43"), false),
        (both.clone().with("mcp-param-region", "Zurich"), false),
        (
            both.with("mcp-param-region", "=?base64?WsO8cmljaA=?="),
            false,
        ),
        (post(json!({})), true),
        (post(json!({"region": null})), true),
        (post(json!({})).with("mcp-param-region", "eu"), false),
        (
            post(json!({"region": "1"})).with("mcp-param-region", "1.0"),
            false,
        ),
    ] {
        let headers = format!("{:?}", request.headers);
        let response = server.ask(&request);
        if is_served {
            assert_eq!(response.status, 200, "{headers}: {response:?}");
        } else {
            response.assert_error(400, -32020);
        }
    }
}

#[test]
fn what_is_wrong_with_a_request_has_its_status_and_its_code() {
    let server = HttpServer::start(&[]);
    let list = modern(1, "tools/list", &json!({}));
    let with_version = |date: &str| {
        let mut message = list.clone();
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(date);
        HttpRequest::post(&message)
    };
    let unsupported = server.ask(&with_version("2031-01-01"));
    let error = unsupported.assert_error(400, -32022);
    assert_eq!(error["error"]["data"]["requested"], "2031-01-01");
    // As in the answer to `server/discover`.
    assert_eq!(error["error"]["data"]["supported"], json!(["2026-07-28"]));
    server
        .ask(&with_version("2025-11-25"))
        .assert_error(400, -32022);
    let mut without_capabilities = list.clone();
    let meta = &mut without_capabilities["params"]["_meta"];
    meta.as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    server
        .ask(&HttpRequest::post(&without_capabilities))
        .assert_error(400, -32602);
    let without_meta = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let without_meta = HttpRequest::post(&without_meta);
    let dated = without_meta
        .clone()
        .with("mcp-protocol-version", "2026-07-28");
    server.ask(&dated).assert_error(400, -32602);
    server.ask(&without_meta).assert_error(400, -32602);
    for method in ["prompts/list", "initialize", "ping", "subscriptions/listen"] {
        let request = HttpRequest::post(&modern(1, method, &json!({})));
        server.ask(&request).assert_error(404, -32601);
    }
    // The parameters of a served method are its own matter.
    let unknown = HttpRequest::post(&modern(1, "tools/call", &call("unknown", &json!({}))));
    server.ask(&unknown).assert_error(200, -32602);
    let batch = json!([list, list]).to_string().into_bytes();
    let batch = HttpRequest {
        body: batch,
        ..HttpRequest::post(&list)
    };
    server.ask(&batch).assert_error(400, -32600);
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        ("{\"id\":1}", -32600),
        ("7", -32600),
    ] {
        let request = HttpRequest {
            body: body.into(),
            ..HttpRequest::post(&list)
        };
        server.ask(&request).assert_error(400, code);
    }
    assert!(server.end().statuses().is_empty());
}

#[test]
fn what_belongs_to_sessions_has_no_meaning() {
    let server = HttpServer::start(&[]);
    for method in ["GET", "DELETE", "PUT"] {
        let response = server.ask(&HttpRequest::bare(method));
        assert_eq!(response.status, 405);
        assert_eq!(response.header("allow"), Some("POST, DELETE, OPTIONS"));
    }
    let list = HttpRequest::post(&modern(1, "tools/list", &json!({})));
    let list = list
        .with("mcp-session-id", "any")
        .with("last-event-id", "1");
    assert_eq!(server.ask(&list).status, 200);
    let notification =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let notification = HttpRequest::post(&notification).with("mcp-protocol-version", "2026-07-28");
    let response = server.ask(&notification);
    assert_eq!((response.status, response.body.as_str()), (202, ""));
    assert_eq!(server.ask(&HttpRequest { path: "/", ..list }).status, 404);
}

#[test]
fn who_asks_for_progress_gets_a_stream_of_events() {
    let server = HttpServer::start(&[]);
    let mut params = call("work", &json!({}));
    params["_meta"]["progressToken"] = json!("p");
    let request = HttpRequest::post(&modern(3, "tools/call", &params));
    let mut client = server.connect();
    client.send(&request);
    let head = client.read_head();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let progress = client.read_event().unwrap();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    assert_eq!(progress["params"]["message"], "half");
    // The call continues, and its client is notified.
    let heartbeat = client.read_event().unwrap();
    assert!(heartbeat["params"]["progress"].as_f64() > progress["params"]["progress"].as_f64());
    server.create("go");
    let mut rest = std::iter::from_fn(|| client.read_event());
    let answer = rest.find(|message| message.get("id").is_some()).unwrap();
    assert_eq!((&answer["id"], text_of(&answer)), (&json!(3), "done"));
    assert_eq!(client.read_event(), None);
    // The connection is still of use.
    let json = request.with("accept", "application/json");
    let answer = client.ask(&json);
    assert_eq!(text_of(&answer.json()), "done");
    let events = json.with("accept", "text/event-stream");
    let answer = client.ask(&events);
    assert!(answer.body.contains(r#""text":"done""#), "{answer:?}");
}
