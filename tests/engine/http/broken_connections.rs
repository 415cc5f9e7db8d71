//! Connections that break, hang, trickle or never end.

use std::io::{self, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use std::{future, thread};

use toolq_core::types::{Effect, HttpMethod, Outcome, TransportCause, TransportPhase};
use toolq_engine::Resolver;

use crate::http::faulty_server::{FaultyServer, ServerBehavior, http_response};
use crate::http::transport_phase;
use crate::support::engine_turn::{TestTurn, http_call, success_text};
use crate::support::lacks;

/// The connection is refused, or TLS fails: the result says how far the exchange got.
#[test]
fn transport_errors_name_their_phase() {
    let closed_address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = http_call(HttpMethod::Get, &format!("http://{closed_address}")).run();
    assert_eq!(transport_phase(refused.outcome()), TransportPhase::Connect);
    let server = FaultyServer::new(&[ServerBehavior::reset()]);
    assert_eq!(
        transport_phase(server.get_call("/").run().outcome()),
        TransportPhase::Response
    );
    let server = FaultyServer::responding_with("HTTP/1.1 200 OK\r\ncontent-le");
    assert_eq!(
        transport_phase(server.get_call("/").run().outcome()),
        TransportPhase::Response
    );
    let server = FaultyServer::responding_with("no http at all\r\n\r\n");
    assert_eq!(
        transport_phase(server.get_call("/").run().outcome()),
        TransportPhase::Response
    );
    let no_tls = FaultyServer::new(&[ServerBehavior::reset()])
        .url
        .replace("http:", "https:");
    let ran = http_call(HttpMethod::Get, &no_tls).run();
    assert_eq!(transport_phase(ran.outcome()), TransportPhase::Connect);
}

/// The cause is found among the errors of the libraries, regardless of their messages.
#[test]
fn an_unreachable_host_has_a_cause_that_decides_the_hint() {
    let cause = |url: &str, resolver: Resolver| {
        let ran = TestTurn::default()
            .resolver(resolver)
            .call(http_call(HttpMethod::Get, url))
            .run();
        match ran.outcome() {
            Outcome::TransportFailed(transport) => transport.cause,
            other => panic!("{other:?}"),
        }
    };
    let closed_address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = cause(&format!("http://{closed_address}"), Resolver::system());
    assert_eq!(refused, TransportCause::ConnectionRefused);
    let unknown = Resolver::new(|_| future::ready(Err(io::Error::other("no such name"))));
    let unknown = cause("http://refused.example/", unknown);
    assert_eq!(unknown, TransportCause::UnknownHost);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let no_tls = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection
            .write_all(b"this is no handshake, nor anything like it")
            .unwrap();
        // The client hangs up as soon as it has read that.
        let _ = io::copy(&mut connection, &mut io::sink());
    });
    assert_eq!(cause(&no_tls, Resolver::system()), TransportCause::Tls);
    let broken = FaultyServer::new(&[ServerBehavior::reset()]);
    assert_eq!(
        cause(&broken.url, Resolver::system()),
        TransportCause::Other
    );
}

/// A body that ends early isn't a success.
#[test]
fn a_truncated_body_is_an_error() {
    let cut = [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ];
    for body in cut {
        let ran = FaultyServer::responding_with(body).get_call("/").run();
        assert_eq!(
            transport_phase(ran.outcome()),
            TransportPhase::Body,
            "{body}"
        );
    }
    let failing = FaultyServer::responding_with(&cut[0].replace("200 OK", "500 No"))
        .get_call("/")
        .run();
    assert!(matches!(failing.outcome(), Outcome::Failed { output, .. } if output.text == "half"));
}

/// A server that stops responding is waited for no longer than the timeout.
#[test]
fn a_hanging_server_times_out() {
    for reply in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    ] {
        let server = FaultyServer::new(&[ServerBehavior::hang(reply)]);
        let ran = server.get_call("/").timeout(200, 0).run();
        let expected = if reply.ends_with("half") { "half" } else { "" };
        assert!(
            matches!(ran.outcome(), Outcome::TimedOut { output, .. } if output.text == expected)
        );
    }
}

/// A body is read only up to `max_saved`; beyond `max_output` it is cut.
#[test]
fn a_large_body_is_too_large() {
    let endless = "HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(5_000);
    for reply in [endless, http_response("200 OK", &"x".repeat(5_000))] {
        let limited = FaultyServer::new(&[ServerBehavior::hang(&reply)])
            .get_call("/")
            .tool(|tool| {
                tool.max_output = 1_000;
                tool.max_saved = 4_000;
            });
        assert_eq!(
            transport_phase(limited.run().outcome()),
            TransportPhase::TooLarge
        );
    }
    let cut = FaultyServer::responding_with(&http_response("200 OK", &"x".repeat(5_000)))
        .get_call("/")
        .tool(|tool| tool.max_output = 1_000);
    let ran = cut.run();
    assert_eq!(
        (
            ran.text().len(),
            ran.outcome().captured().unwrap().cut_bytes
        ),
        (1_000, 4_000)
    );
}

/// Connections reset before the head, in the head and in the body.
#[test]
fn a_reset_names_its_phase() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    for (reply, expected) in [
        ("", TransportPhase::Response),
        ("HTTP/1.1 200 O", TransportPhase::Response),
        (head, TransportPhase::Body),
    ] {
        let server = FaultyServer::new(&[ServerBehavior::Reset(reply.into())]);
        let phase = transport_phase(server.get_call("/").run().outcome());
        // A reset may discard bytes that had already arrived.
        assert!(
            phase == expected || phase == TransportPhase::Response,
            "{reply} {phase:?}"
        );
    }
}

/// Malformed HTTP is an error: never a panic, and never a success with part of the body.
#[test]
fn malformed_http_is_an_error() {
    let many = "x: y\r\n".repeat(5_000);
    let long = "x".repeat(1 << 20);
    for reply in [
        "HTTP/9.9 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 999999 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(),
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nx: \0\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        format!("HTTP/1.1 200 OK\r\nx: {long}\r\n\r\n"),
        format!("HTTP/1.1 200 {long}\r\n\r\n"),
        "\0".repeat(10_000),
    ] {
        let ran = FaultyServer::responding_with(&reply).get_call("/").run();
        let phase = transport_phase(ran.outcome());
        assert!(
            matches!(phase, TransportPhase::Response | TransportPhase::Body),
            "{reply:.60} {phase:?}"
        );
    }
}

/// A byte now and then doesn't extend the timeout, neither in the head nor in the body. Nor does a server that only accepts
/// the connection, or one that sends `100 Continue` forever.
#[test]
fn the_timeout_covers_the_whole_exchange() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    let endless_head = (b"HTTP/1.1 200 OK\r\n".to_vec(), b"x: y\r\n".to_vec());
    let interim = format!("HTTP/1.1 100 Continue\r\nx: {}\r\n\r\n", "x".repeat(10_000));
    let limit = Duration::from_millis(300);
    for behavior in [
        ServerBehavior::Drip(head.repeat(100).into()),
        ServerBehavior::Drip((head.to_owned() + &"x".repeat(1_000)).into()),
        ServerBehavior::Ignore,
        ServerBehavior::Repeat(Vec::new(), interim.into()),
    ] {
        let ran = FaultyServer::new(&[behavior])
            .get_call("/")
            .timeout(300, 0)
            .run();
        assert!(matches!(ran.outcome(), Outcome::TimedOut { .. }));
        // The server would continue forever.
        assert!(ran.elapsed >= limit, "{:?}", ran.elapsed);
    }
    let ran = FaultyServer::new(&[ServerBehavior::Repeat(endless_head.0, endless_head.1)])
        .get_call("/")
        .run();
    assert_eq!(transport_phase(ran.outcome()), TransportPhase::Response);
}

/// An endless body is abandoned as soon as it is too large, in every framing.
#[test]
fn an_endless_body_is_abandoned() {
    let block = vec![b'x'; 1 << 16];
    let chunk = [b"10000\r\n".as_slice(), &block, b"\r\n"].concat();
    for (framing, repeated) in [
        ("connection: close", &block),
        ("transfer-encoding: chunked", &chunk),
        ("content-length: 9223372036854775807", &block),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
        let server = FaultyServer::new(&[ServerBehavior::Repeat(head.into(), repeated.clone())]);
        let call = server.get_call("/").tool(|tool| {
            tool.effect = Effect::Write;
            tool.max_saved = 1 << 20;
        });
        let ran = call.run();
        assert_eq!(
            transport_phase(ran.outcome()),
            TransportPhase::TooLarge,
            "{framing}"
        );
        // Socket buffers may take some more than the limit.
        assert!(
            server.bytes_written() < 64 << 20,
            "{framing}: {}",
            server.bytes_written()
        );
    }
}

/// A kept connection may end while the next request is on its way. A request that may have had an effect has its own, and
/// one that failed on a connection of its own isn't sent again.
#[test]
fn a_request_on_a_kept_connection_that_closes_is_sent_once_more() {
    let kept = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let closes = ServerBehavior::CloseKept(kept.into());
    for (effect, requests) in [
        (Effect::Read, 3),
        (Effect::Idempotent, 3),
        (Effect::Write, 2),
    ] {
        let server = FaultyServer::new(&[closes.clone(), ServerBehavior::respond(kept)]);
        let call = || {
            let call = server.post_call().tool(|tool| tool.effect = effect);
            call.not_concurrency_safe()
        };
        let ran = TestTurn::default().call(call()).call(call()).run();
        for outcome in ran.outcomes.values() {
            assert_eq!(success_text(outcome), "ok", "{effect:?}");
        }
        assert_eq!(server.requests().len(), requests, "{effect:?}");
    }
    let server = FaultyServer::new(&[closes.clone(), ServerBehavior::reset()]);
    let call = || server.get_call("/").not_concurrency_safe();
    let ran = TestTurn::default().call(call()).call(call()).run();
    assert_eq!(transport_phase(&ran.outcomes[&1]), TransportPhase::Response);
    assert_eq!(server.requests().len(), 3);
}

/// Whether it was asked for or not, a body is decoded, and no more of it than is of use.
#[test]
fn a_compressed_body_is_decoded_within_the_limits() {
    if lacks(&["gzip"]) {
        return;
    }
    let compress = |script: &str| {
        Command::new("sh")
            .args(["-c", script])
            .output()
            .unwrap()
            .stdout
    };
    let answer = |encoding: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n\r\n");
        FaultyServer::new(&[ServerBehavior::Respond([head.as_bytes(), body].concat())])
    };
    let whole = "printf '{\"rate\"' | gzip; printf ': 7}' | gzip";
    for encoding in ["gzip", "x-gzip", "GZIP"] {
        let server = answer(encoding, &compress(whole));
        let call = server.get_call("/");
        let call = call.http_backing(|http| http.select = Some("/rate".to_owned()));
        assert_eq!(call.run().text(), "7", "{encoding}");
    }
    let bomb = compress("head -c 100000000 /dev/zero | gzip");
    let server = answer("gzip", &bomb);
    let call = server.get_call("/").tool(|tool| tool.max_saved = 1 << 20);
    assert_eq!(
        transport_phase(call.run().outcome()),
        TransportPhase::TooLarge
    );
    // The answer is whole, so what was asked for isn't in doubt.
    let server = answer("gzip", b"{\"order\": 7}");
    let called = server
        .post_call()
        .tool(|tool| tool.effect = Effect::Write)
        .run();
    assert!(
        matches!(called.outcome(), Outcome::BadOutput { problem, .. } if problem.contains("called gzip")),
        "{:?}",
        called.outcome()
    );
    let server = answer("gzip", &bomb[..bomb.len() / 2]);
    let ran = server
        .get_call("/")
        .tool(|tool| tool.max_saved = 1 << 40)
        .run();
    assert_eq!(transport_phase(ran.outcome()), TransportPhase::Body);
}

#[test]
fn a_body_in_another_encoding_is_refused() {
    let body = vec![0; 1 << 16];
    for encoding in ["GZIP, gzip", "deflate", "br", "zstd", "x-own"] {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n\r\n");
        let server = FaultyServer::new(&[ServerBehavior::Repeat(head.into(), body.clone())]);
        let ran = server.get_call("/").run();
        match ran.outcome() {
            Outcome::BadOutput { problem, .. } => {
                assert!(
                    problem.contains(&format!("encoded ({encoding})")),
                    "{problem}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(server.bytes_written() < 16 << 20);
    }
    for response in [
        "content-encoding: identity\r\n\r\nplain",
        "content-encoding: gzip\r\n\r\n",
    ] {
        let ran = FaultyServer::responding_with(&format!("HTTP/1.1 200 OK\r\n{response}"))
            .get_call("/")
            .run();
        assert_eq!(ran.text(), response.rsplit('\n').next().unwrap());
    }
    let failing =
        FaultyServer::responding_with("HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\n\r\nxxx");
    assert_eq!(
        failing.get_call("/").run().outcome().ending(),
        Some(toolq_core::types::CallEnding::HttpStatus(500))
    );
}
