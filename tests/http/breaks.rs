//! Connections that break, hang, drip and never end.

use std::net::TcpListener;
use std::time::Duration;

use toolq_core::types::{Effect, HttpMethod, Outcome, TransportPhase};

use crate::phase;
use crate::scene::http;
use crate::server::{Act, Server, response};

/// FAULTS 91.
#[test]
fn what_breaks_says_how_far_it_came() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = http(HttpMethod::Get, &format!("http://{free}")).run();
    assert_eq!(phase(refused.outcome()), TransportPhase::Connect);
    let server = Server::new(&[Act::reset()]);
    assert_eq!(
        phase(server.get("/").run().outcome()),
        TransportPhase::Response
    );
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-le");
    assert_eq!(
        phase(server.get("/").run().outcome()),
        TransportPhase::Response
    );
    let server = Server::saying("no http at all\r\n\r\n");
    assert_eq!(
        phase(server.get("/").run().outcome()),
        TransportPhase::Response
    );
    let no_tls = Server::new(&[Act::reset()]).url.replace("http:", "https:");
    let ran = http(HttpMethod::Get, &no_tls).run();
    assert_eq!(phase(ran.outcome()), TransportPhase::Connect);
}

/// FAULTS 92: half a body is no success.
#[test]
fn a_cut_body_is_an_error() {
    let cut = [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ];
    for body in cut {
        let ran = Server::saying(body).get("/").run();
        assert_eq!(phase(ran.outcome()), TransportPhase::Body, "{body}");
    }
    let failing = Server::saying(&cut[0].replace("200 OK", "500 No"))
        .get("/")
        .run();
    assert!(matches!(failing.outcome(), Outcome::Failed { output, .. } if output == "half"));
}

/// FAULTS 93: a server that doesn't go on is not waited for longer than declared.
#[test]
fn a_hanging_server_is_left() {
    for said in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    ] {
        let server = Server::new(&[Act::hang(said)]);
        let ran = server.get("/").timeout(200, 0).run();
        let expected = if said.ends_with("half") { "half" } else { "" };
        assert!(matches!(ran.outcome(), Outcome::TimedOut { output, .. } if output == expected));
    }
}

/// FAULTS 94: no body is read beyond what can be used.
#[test]
fn a_large_body_is_too_large() {
    let endless = "HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(5_000);
    for said in [endless, response("200 OK", &"x".repeat(5_000))] {
        let limited = Server::new(&[Act::hang(&said)]).get("/").tool(|tool| {
            tool.max_output = 1_000;
            tool.max_saved = 4_000;
        });
        assert_eq!(phase(limited.run().outcome()), TransportPhase::TooLarge);
    }
    let cut = Server::saying(&response("200 OK", &"x".repeat(5_000)))
        .get("/")
        .tool(|tool| tool.max_output = 1_000);
    let ran = cut.run();
    assert_eq!(
        (ran.text().len(), ran.outcome().captured().unwrap().cut),
        (1_000, 4_000)
    );
}

/// FAULTS 91, 92: resets in the head, in the body, and on the way.
#[test]
fn a_reset_says_where_it_struck() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    for (said, expected) in [
        ("", TransportPhase::Response),
        ("HTTP/1.1 200 O", TransportPhase::Response),
        (head, TransportPhase::Body),
    ] {
        let server = Server::new(&[Act::Reset(said.into())]);
        let phase = phase(server.get("/").run().outcome());
        // What had come may be lost with the connection.
        assert!(
            phase == expected || phase == TransportPhase::Response,
            "{said} {phase:?}"
        );
    }
}

/// FAULTS 91, 92: what is no HTTP is an error or a defined answer, never a panic and never half a success.
#[test]
fn what_is_no_http_is_an_error() {
    let many = "x: y\r\n".repeat(5_000);
    let long = "x".repeat(1 << 20);
    for said in [
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
        let ran = Server::saying(&said).get("/").run();
        let phase = phase(ran.outcome());
        assert!(
            matches!(phase, TransportPhase::Response | TransportPhase::Body),
            "{said:.60} {phase:?}"
        );
    }
}

/// FAULTS 93: a byte now and then buys no time, in the head or in the body; nor does a server that only accepts, or that
/// says "continue" for ever.
#[test]
fn the_deadline_is_of_the_whole_exchange() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    let endless_head = (b"HTTP/1.1 200 OK\r\n".to_vec(), b"x: y\r\n".to_vec());
    let interim = format!("HTTP/1.1 100 Continue\r\nx: {}\r\n\r\n", "x".repeat(10_000));
    let limit = Duration::from_millis(300);
    for act in [
        Act::Drip(head.repeat(100).into()),
        Act::Drip((head.to_owned() + &"x".repeat(1_000)).into()),
        Act::Ignore,
        Act::Repeat(Vec::new(), interim.into()),
    ] {
        let ran = Server::new(&[act]).get("/").timeout(300, 0).run();
        assert!(matches!(ran.outcome(), Outcome::TimedOut { .. }));
        assert!((limit..limit * 20).contains(&ran.took), "{:?}", ran.took);
    }
    let ran = Server::new(&[Act::Repeat(endless_head.0, endless_head.1)])
        .get("/")
        .run();
    assert_eq!(phase(ran.outcome()), TransportPhase::Response);
}

/// FAULTS 94: an endless body is left as soon as it is too large, in each framing.
#[test]
fn an_endless_body_is_left() {
    let block = vec![b'x'; 1 << 16];
    let chunk = [b"10000\r\n".as_slice(), &block, b"\r\n"].concat();
    for (framing, again) in [
        ("connection: close", &block),
        ("transfer-encoding: chunked", &chunk),
        ("content-length: 9223372036854775807", &block),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
        let server = Server::new(&[Act::Repeat(head.into(), again.clone())]);
        let asked = server.get("/").tool(|tool| {
            tool.effect = Effect::Write;
            tool.max_saved = 1 << 20;
        });
        let ran = asked.run();
        assert_eq!(phase(ran.outcome()), TransportPhase::TooLarge, "{framing}");
        // Beyond the limit only what the sockets hold.
        assert!(server.said() < 64 << 20, "{framing}: {}", server.said());
    }
}

/// FAULTS 94: no encoding is asked for, and one that comes anyway is not decoded: a bomb stays as small as it came.
#[test]
fn an_encoded_body_is_refused() {
    let mut bomb = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    bomb.resize(1 << 16, 0);
    for encoding in ["gzip", "GZIP, gzip", "br", "zstd", "deflate", "x-own"] {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n\r\n");
        let server = Server::new(&[Act::Repeat(head.into(), bomb.clone())]);
        let ran = server.get("/").run();
        match ran.outcome() {
            Outcome::BadOutput { problem, .. } => {
                assert!(
                    problem.contains(&format!("encoded ({encoding})")),
                    "{problem}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(!server.heard()[0].contains("accept-encoding"));
        assert!(server.said() < 16 << 20);
    }
    for said in [
        "content-encoding: identity\r\n\r\nplain",
        "content-encoding: gzip\r\n\r\n",
    ] {
        let ran = Server::saying(&format!("HTTP/1.1 200 OK\r\n{said}"))
            .get("/")
            .run();
        assert_eq!(ran.text(), said.rsplit('\n').next().unwrap());
    }
    let failing = Server::saying("HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\n\r\nxxx");
    assert_eq!(
        failing.get("/").run().outcome().ending(),
        Some(toolq_core::types::Ending::Http(500))
    );
}
