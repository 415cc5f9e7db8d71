//! Keys are sent, and told to nobody.

use toolq_core::types::{Draft, Ending, Outcome, Piece};

use crate::scene::Scene;
use crate::server::{Act, Server, response};
use crate::support::{self, Toolq};

/// FAULTS 104: a key is sent, and told to nobody.
#[test]
fn a_key_in_a_header_is_masked() {
    let server = Server::saying(&response("401 No", "the key Bearer hunter-22 is not known"));
    let asked = server.get("/").request(|request| {
        let key = Piece::Env {
            name: "KEY".to_owned(),
            default: None,
        };
        let value = Draft(vec![Piece::Text("Bearer ".to_owned()), key]);
        request.headers = vec![("authorization".to_owned(), value)];
    });
    let ran = Scene::default()
        .env("KEY", "hunter-22")
        .secret("hunter-22")
        .call(asked)
        .run();
    assert!(server.heard()[0].contains("authorization: Bearer hunter-22"));
    match ran.outcome() {
        Outcome::Failed {
            output,
            ending: Ending::Http(401),
            ..
        } => {
            assert_eq!(output, "the key Bearer [masked] is not known");
        }
        other => panic!("{other:?}"),
    }
}

/// FAULTS 104, 131: whatever a server does with a key, none of toolq's outputs has it: not the result, the log, the
/// events, what people see, a plan, or an error of the transport, also where the server sends it back in a place that
/// breaks the exchange.
#[test]
fn a_key_is_in_no_output() {
    const KEY: &str = "c4n4ry-k3y-0123456789";
    let told = |head: &str| format!("HTTP/1.1 {head}\r\nx-echo: {KEY}\r\n\r\nyour key {KEY}");
    let acts = [
        Act::say(&response("200 OK", &format!("{{\"key\":\"{KEY}\"}}"))),
        Act::say(&told("401 No")),
        Act::say(&told(&format!(
            "302 Found\r\nlocation: http://{KEY}.example/{KEY}"
        ))),
        Act::say(&format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {KEY}\r\n\r\nx"
        )),
        Act::say(&format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {KEY}\r\n\r\nx"
        )),
        Act::say(&format!("{KEY}\r\n\r\n")),
        Act::hang(&format!(
            "HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{KEY}"
        )),
        Act::reset(),
    ];
    let server = Server::new(&acts);
    let file = format!(
        "tools:
  ask:
    input_schema: {{type: object}}
    timeout: 500ms
    http: {{method: POST, url: \"{}/${{KEY}}\", headers: {{authorization: \"Bearer ${{KEY}}\"}}, query: {{k: \"${{KEY}}\"}}, redirects: 2}}
",
        server.url
    );
    let calls: Vec<_> = acts
        .iter()
        .map(|_| ("ask", serde_json::json!({})))
        .collect();
    let toolq = || {
        Toolq::new()
            .tools(&file)
            .env("KEY", KEY)
            .stdin(support::response(&calls))
    };
    let planned = toolq().run(&["plan", "-v"]).exits(0);
    let ran = toolq()
        .run(&[
            "run",
            "-v",
            "--progress",
            "plain",
            "--events",
            "events.ndjson",
            "--log",
            "log.jsonl",
        ])
        .exits(3);
    assert_eq!(server.heard().len(), acts.len());
    assert!(server.heard()[0].contains(&format!("authorization: Bearer {KEY}")));
    let outputs = [
        planned.stdout,
        planned.stderr,
        ran.file("events.ndjson").unwrap(),
        ran.file("log.jsonl").unwrap(),
        ran.stdout,
        ran.stderr,
    ];
    for output in outputs {
        assert!(!output.is_empty() && !output.contains("c4n4ry"), "{output}");
    }
}
