//! Redirects: followed only where declared, only to the same origin, and only up to a limit.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use toolq_core::types::{CallEnding, Effect, HttpMethod, Reach, RetryCondition};

use crate::http::faulty_server::{FaultyServer, ServerBehavior, http_response};
use crate::support::engine_turn::http_call;

/// By default none; with `redirects: N` up to N, all within the same origin.
#[test]
fn redirects_are_followed_only_as_declared() {
    let redirect_to = |location: &str| {
        ServerBehavior::respond(&http_response(
            &format!("302 Found\r\nlocation: {location}"),
            "moved",
        ))
    };
    let ok = ServerBehavior::respond(&http_response("200 OK", "there"));
    let undeclared = FaultyServer::new(&[redirect_to("/next"), ok.clone()]);
    assert_eq!(
        undeclared.get_call("/").run().outcome().ending(),
        Some(CallEnding::HttpStatus(302))
    );
    let declared = FaultyServer::new(&[redirect_to("/next"), ok.clone()]);
    let ran = declared
        .get_call("/")
        .http_backing(|backing| backing.max_redirects = 1)
        .run();
    assert_eq!(ran.text(), "there");
    assert!(declared.requests()[1].starts_with("GET /next "));
    let looping = FaultyServer::new(&[redirect_to("/")]);
    let ran = looping
        .get_call("/")
        .http_backing(|backing| backing.max_redirects = 3)
        .run();
    assert_eq!(
        (ran.outcome().ending(), looping.requests().len()),
        (Some(CallEnding::RedirectedStatus(302)), 4)
    );
    let elsewhere = FaultyServer::new(&[ok]);
    let redirecting = FaultyServer::new(&[redirect_to(&elsewhere.url)]);
    let ran = redirecting
        .get_call("/")
        .http_backing(|backing| backing.max_redirects = 3)
        .run();
    assert_eq!(
        (ran.outcome().ending(), elsewhere.requests().len()),
        (Some(CallEnding::HttpStatus(302)), 0)
    );
}

/// A redirect to another origin is not followed, whatever the scheme.
#[test]
fn redirects_to_other_origins_are_not_followed() {
    let elsewhere = FaultyServer::responding_with(&http_response("200 OK", "stolen"));
    let port = elsewhere.port();
    for location in [
        elsewhere.url.clone(),
        format!("//127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://user:pass@127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        "file:///etc/passwd".to_owned(),
        "ftp://127.0.0.1/".to_owned(),
        "javascript:alert(1)".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::1".to_owned(),
        String::new(),
    ] {
        for status in ["301", "302", "303", "307", "308"] {
            let head = format!("{status} Moved\r\nlocation: {location}");
            let server = FaultyServer::new(&[
                ServerBehavior::respond(&http_response(&head, "moved")),
                ServerBehavior::respond(&http_response("200 OK", "same")),
            ]);
            let call = server
                .get_call("/")
                .http_backing(|backing| backing.max_redirects = 3);
            let ran = call.run();
            // An empty location means the same resource.
            let expected = if location.is_empty() {
                CallEnding::RedirectedStatus(200)
            } else {
                CallEnding::HttpStatus(status.parse().unwrap())
            };
            assert_eq!(
                ran.outcome().ending(),
                Some(expected),
                "{status} {location}"
            );
        }
    }
    assert!(elsewhere.requests().is_empty());
}

/// A POST is sent again only if the tool declares redirects. 301, 302 and 303 turn it into a GET, as in every client; 307 and
/// 308 keep method and body.
#[test]
fn a_post_is_redirected_only_as_declared() {
    for (status, redirects, method, body) in [
        ("307", 0, None, ""),
        ("308", 0, None, ""),
        ("307", 1, Some("POST"), r#"{"n":1.00}"#),
        ("308", 1, Some("POST"), r#"{"n":1.00}"#),
        ("301", 1, Some("GET"), ""),
        ("302", 1, Some("GET"), ""),
        ("303", 1, Some("GET"), ""),
    ] {
        let moved = format!("{status} Moved\r\nlocation: /next");
        let server = FaultyServer::new(&[
            ServerBehavior::respond(&http_response(&moved, "")),
            ServerBehavior::respond(&http_response("200 OK", "")),
        ]);
        let call = server
            .post_call()
            .http_backing(|backing| backing.max_redirects = redirects);
        call.run();
        let requests = server.requests();
        let Some(method) = method else {
            assert_eq!(requests.len(), 1);
            continue;
        };
        assert!(
            requests[1].starts_with(&format!("{method} /next ")),
            "{status}"
        );
        assert!(
            requests[1].ends_with(&format!("\r\n\r\n{body}")),
            "{status}"
        );
    }
}

/// Who sends a redirect may have done the work, so what the next response says is no refusal, and a `write` isn't sent again.
#[test]
fn what_comes_behind_a_redirect_refuses_nothing() {
    for location in ["/next", "/"] {
        let moved = http_response(&format!("303 See Other\r\nlocation: {location}"), "");
        for (next, is_in_doubt) in [
            (
                ServerBehavior::respond(&http_response("429 Slow", "")),
                false,
            ),
            (
                ServerBehavior::respond(&http_response("404 Lost", "")),
                false,
            ),
            (ServerBehavior::respond(""), true),
        ] {
            let server = FaultyServer::new(&[ServerBehavior::respond(&moved), next]);
            let call = server
                .post_call()
                .http_backing(|backing| backing.max_redirects = 1)
                .tool(|tool| {
                    tool.effect = Effect::Write;
                    tool.retry.max_retries = 1;
                    tool.retry.conditions = vec![RetryCondition::RateLimited];
                });
            let ran = call.run();
            assert_eq!((ran.attempts[&0], server.requests().len()), (1, 2));
            let outcome = ran.outcome();
            assert_eq!(outcome.reach(), Reach::Open, "{outcome:?}");
            assert_eq!(outcome.is_in_doubt(), is_in_doubt, "{outcome:?}");
        }
    }
}

/// The same if the connection that a redirect needs isn't there.
#[test]
fn a_redirect_to_a_server_that_is_gone_leaves_a_write_in_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let moved = http_response("303 See Other\r\nlocation: /next", "");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        let (mut request, mut byte) = (Vec::new(), [0]);
        while !request.ends_with(b"\"body\"") {
            stream.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        stream.write_all(moved.as_bytes()).unwrap();
    });
    let call = http_call(HttpMethod::Post, &url)
        .body(r#""body""#)
        .http_backing(|backing| backing.max_redirects = 1)
        .tool(|tool| tool.effect = Effect::Write);
    let ran = call.run();
    assert!(ran.outcome().is_in_doubt(), "{:?}", ran.outcome());
}
