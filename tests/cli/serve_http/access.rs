//! Who gets in: web pages only from allowed origins, and only those who know the token.

use std::fs;

use serde_json::json;

use crate::serve_http::http_client::{HttpClient, HttpRequest};
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{TOOLS, call, legacy, modern, text_of};
use crate::support::CliSandbox;

const TOKEN: &str = "b34r3r-canary";

fn list() -> HttpRequest {
    HttpRequest::post(&modern(1, "tools/list", &json!({})))
}

fn with_token(arguments: &[&str]) -> HttpServer {
    let sandbox = CliSandbox::new().tools(TOOLS).env("MCP_TOKEN", TOKEN);
    let arguments = [&["--token-env", "MCP_TOKEN"], arguments].concat();
    HttpServer::start_in(sandbox, &arguments)
}

/// A web page whose name was made to mean this machine still sends its own name.
#[test]
fn foreign_hosts_and_origins_are_refused() {
    let server = HttpServer::start(&[]);
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "localhost.evil.example:80"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
    ] {
        let response = server.ask(&list().with(name, value));
        response.assert_error(403, -32600);
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
    let evil = HttpRequest::bare("OPTIONS")
        .with("origin", "http://evil.example")
        .with("access-control-request-method", "POST");
    assert_eq!(server.ask(&evil).status, 403);
    let mut client = server.connect();
    let head =
        "POST /mcp HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    client.send_bytes(head.as_bytes()).unwrap();
    assert_eq!(client.read_response().status, 403);
    for host in ["localhost:1", "[::1]"] {
        assert_eq!(server.ask(&list().with("host", host)).status, 200);
    }
    let local = server.ask(&list().with("origin", "http://localhost:6274"));
    assert_eq!(local.status, 200);
    assert_eq!(
        local.header("access-control-allow-origin"),
        Some("http://localhost:6274")
    );
}

#[test]
fn a_declared_origin_may_send_requests_and_read_responses() {
    let origin = "https://app.example.com";
    let server = with_token(&["--origin", origin]);
    let preflight = HttpRequest::bare("OPTIONS")
        .with("origin", origin)
        .with("host", "app.example.com")
        .with("access-control-request-method", "POST")
        .with(
            "access-control-request-headers",
            "authorization,mcp-param-region",
        );
    let response = server.ask(&preflight);
    assert_eq!((response.status, response.body.as_str()), (204, ""));
    assert_eq!(response.header("access-control-allow-origin"), Some(origin));
    assert_eq!(
        response.header("access-control-allow-headers"),
        Some("authorization,mcp-param-region")
    );
    let methods = response.header("access-control-allow-methods");
    assert_eq!(methods, Some("POST, DELETE, OPTIONS"));
    assert_eq!(response.header("vary"), Some("origin"));
    // A page may read why it was refused.
    let refused = server.ask(&list().with("origin", origin));
    refused.assert_error(401, -32600);
    assert_eq!(refused.header("access-control-allow-origin"), Some(origin));
    let allowed = list()
        .with("origin", origin)
        .with("authorization", &format!("Bearer {TOKEN}"));
    let response = server.ask(&allowed);
    assert_eq!(response.status, 200);
    let exposed = response.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
}

/// The client gets 401.
#[test]
fn without_the_token_nothing_is_answered() {
    let server = with_token(&[]);
    let bearer = format!("Bearer {TOKEN}");
    for request in [
        list(),
        list().with("authorization", "Bearer b34r3r-canarz"),
        list().with("authorization", TOKEN),
        HttpRequest::bare("GET"),
        HttpRequest {
            path: "/",
            ..list()
        },
        HttpRequest::post(&legacy(
            1,
            "initialize",
            &json!({"protocolVersion": "2025-11-25"}),
        )),
    ] {
        let response = server.ask(&request);
        response.assert_error(401, -32600);
        let scheme = response.header("www-authenticate");
        assert_eq!(scheme, Some("Bearer realm=\"toolq\""));
    }
    assert_eq!(
        server.ask(&list().with("authorization", &bearer)).status,
        200
    );
    assert!(server.end().statuses().is_empty());
}

/// Not even if a client repeats it in a call.
#[test]
fn the_token_is_in_no_output() {
    let server = with_token(&[]);
    let bearer = format!("Bearer {TOKEN}");
    let ask = |params| {
        let request = HttpRequest::post(&modern(1, "tools/call", &params));
        server.ask(&request.with("authorization", &bearer))
    };
    let answer = ask(call("echo", &json!({"text": TOKEN})));
    assert_eq!(text_of(&answer.json()), "[masked]");
    let unknown = ask(call(TOKEN, &json!({})));
    let mismatch = HttpRequest::post(&modern(1, TOKEN, &json!({})));
    let mismatch = mismatch
        .with("authorization", &bearer)
        .with("mcp-method", "x");
    let host = list().with("host", TOKEN);
    for response in [unknown, server.ask(&mismatch), server.ask(&host)] {
        assert!(!response.body.contains(TOKEN), "{response:?}");
    }
    let ended = server.end();
    assert!(!ended.stderr.contains(TOKEN), "{}", ended.stderr);
    let log = ended.log();
    assert!(!format!("{log:?}").contains(TOKEN));
    assert!(!log.is_empty());
}

#[test]
fn what_is_unsafe_or_makes_no_sense_is_refused_before_anything_runs() {
    let refused = |arguments: &[&str], why: &str| {
        let sandbox = CliSandbox::new()
            .tools(TOOLS)
            .env("MCP_TOKEN", TOKEN)
            .env("SHORT", "abc")
            .env("SPACED", "two words of a token");
        let output = sandbox
            .run(&[&["serve"], arguments].concat())
            .assert_exit(2);
        assert!(output.stderr.contains(why), "{}", output.stderr);
        assert!(
            fs::read_dir(output.dir.path().join("state")).is_err(),
            "a log was begun"
        );
    };
    refused(
        &["--http", "0.0.0.0:0"],
        "can be reached from other machines",
    );
    refused(&["--http", "[::]:0"], "can be reached from other machines");
    let unset = ["--http", "127.0.0.1:0", "--token-env", "NOT_SET"];
    refused(
        &unset,
        "--token-env NOT_SET: the variable is unset or empty",
    );
    let short = ["--http", "127.0.0.1:0", "--token-env", "SHORT"];
    refused(&short, "too short");
    let spaced = ["--http", "127.0.0.1:0", "--token-env", "SPACED"];
    refused(&spaced, "no spaces");
    refused(
        &["--http", "8080"],
        "must be an IP address or `localhost`, and a port",
    );
    refused(
        &["--http", "example.com:80"],
        "must be an IP address or `localhost`, and a port",
    );
    refused(&["--token-env", "MCP_TOKEN"], "--http");
    refused(&["--origin", "https://a.example"], "--http");
    for origin in ["a.example", "https://a.example/page", "file:///etc", "*"] {
        let arguments = ["--http", "127.0.0.1:0", "--origin", origin];
        refused(&arguments, &format!("--origin {origin}: "));
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["--http", &address], &format!("can't listen on {address}"));
}

#[test]
fn a_token_opens_other_addresses() {
    let sandbox = CliSandbox::new().tools(TOOLS).env("MCP_TOKEN", TOKEN);
    let server = HttpServer::start_in(
        sandbox,
        &["--http", "0.0.0.0:0", "--token-env", "MCP_TOKEN"],
    );
    let address = format!("127.0.0.1:{}", server.address.port());
    let mut client = HttpClient::connect(address.parse().unwrap());
    assert_eq!(client.ask(&list()).status, 401);
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(
        client.ask(&list().with("authorization", &bearer)).status,
        200
    );
}

/// Clients have to leave out a tool with such a header.
#[test]
fn a_header_that_is_not_allowed_is_an_error() {
    let tools = "version: 1\ntools:\n  a:\n    input_schema: {type: object, properties: {x: {type: number, x-mcp-header: X}}}\n    effect: read\n    command: [date]\n";
    let sandbox = CliSandbox::new().tools(tools);
    let output = sandbox.run(&["serve", "--http", "127.0.0.1:0"]);
    let output = output.assert_exit(2);
    let problem = "a can't be called over HTTP: ";
    assert!(output.stderr.contains(problem), "{}", output.stderr);
}
