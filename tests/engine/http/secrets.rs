//! API keys are sent to the server and appear in no output.

use toolq_core::types::{CallEnding, Outcome, PartialTemplate, Segment};

use crate::http::faulty_server::{FaultyServer, ServerBehavior, http_response};
use crate::support::CliSandbox;
use crate::support::engine_turn::TestTurn;

/// The server may repeat it.
#[test]
fn a_key_in_a_header_is_masked() {
    let server = FaultyServer::responding_with(&http_response(
        "401 No",
        "the key Bearer hunter-22 is not known",
    ));
    let call = server.get_call("/").http_invocation(|request| {
        let key = Segment::Env {
            name: "KEY".to_owned(),
            default: None,
        };
        let value = PartialTemplate(vec![Segment::Text("Bearer ".to_owned()), key]);
        request.headers = vec![("authorization".to_owned(), value)];
    });
    let ran = TestTurn::default()
        .env("KEY", "hunter-22")
        .secret("hunter-22")
        .call(call)
        .run();
    assert!(server.requests()[0].contains("authorization: Bearer hunter-22"));
    match ran.outcome() {
        Outcome::Failed {
            output,
            ending: CallEnding::HttpStatus(401),
            ..
        } => {
            assert_eq!(output.text, "the key Bearer [masked] is not known");
        }
        other => panic!("{other:?}"),
    }
}

/// Regardless of what a server does with a key, no output of toolq contains it: not results, log, events, progress, plans or
/// transport errors, even if the server echoes the key where it breaks the protocol.
#[test]
fn a_key_is_in_no_output() {
    const KEY: &str = "c4n4ry-k3y-0123456789";
    let echo_key = |head: &str| format!("HTTP/1.1 {head}\r\nx-echo: {KEY}\r\n\r\nyour key {KEY}");
    let behaviors = [
        ServerBehavior::respond(&http_response("200 OK", &format!("{{\"key\":\"{KEY}\"}}"))),
        ServerBehavior::respond(&echo_key("401 No")),
        ServerBehavior::respond(&echo_key(&format!(
            "302 Found\r\nlocation: http://{KEY}.example/{KEY}"
        ))),
        ServerBehavior::respond(&format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {KEY}\r\n\r\nx"
        )),
        ServerBehavior::respond(&format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {KEY}\r\n\r\nx"
        )),
        ServerBehavior::respond(&format!("{KEY}\r\n\r\n")),
        ServerBehavior::hang(&format!(
            "HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{KEY}"
        )),
        ServerBehavior::reset(),
    ];
    let server = FaultyServer::new(&behaviors);
    let file = format!(
        "tools:
  ask:
    input_schema: {{type: object}}
    timeout: 500ms
    on_doubt: continue
    http: {{method: POST, url: \"{}/${{KEY}}\", headers: {{authorization: \"Bearer ${{KEY}}\"}}, query: {{k: \"${{KEY}}\"}}, redirects: 2}}
",
        server.url
    );
    let calls: Vec<_> = behaviors
        .iter()
        .map(|_| ("ask", serde_json::json!({})))
        .collect();
    let toolq = || {
        CliSandbox::new()
            .tools(&file)
            .env("KEY", KEY)
            .stdin(crate::support::model_response(&calls))
    };
    let planned = toolq().run(&["plan", "-v"]).assert_exit(0);
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
        .assert_exit(3);
    assert_eq!(server.requests().len(), behaviors.len());
    assert!(server.requests()[0].contains(&format!("authorization: Bearer {KEY}")));
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
