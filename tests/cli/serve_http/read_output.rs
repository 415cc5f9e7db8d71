//! `read_output` where clients can be distinguished, and where they can't.

use serde_json::{Value, json};

use crate::serve_http::http_client::HttpRequest;
use crate::serve_http::http_server::{HttpServer, LegacySession};
use crate::serve_http::{call, legacy, modern, text_of};
use crate::support::CliSandbox;

const TOOLS: &str = r"
version: 1
builtins: [read_output]
tools:
  dump: {effect: read, max_output: 100, input_schema: {type: object}, command: [seq, '1000']}
";

fn ask(session: &mut LegacySession, tool: &str, input: &Value) -> String {
    let request = session.post(&legacy(1, "tools/call", &call(tool, input)));
    text_of(&session.client.ask(&request).json()).to_owned()
}

#[test]
fn a_client_reads_its_own_outputs_and_not_those_of_another() {
    let server = HttpServer::start_in(CliSandbox::new().tools(TOOLS), &[]);
    let mut one = server.initialize("2025-11-25");
    let mut other = server.initialize("2025-11-25");
    let cut = ask(&mut one, "dump", &json!({}));
    assert!(
        cut.contains(r#"read_output {"id":"call_0"} reads it"#),
        "{cut}"
    );
    let cut = ask(&mut other, "dump", &json!({}));
    assert!(
        cut.contains(r#"read_output {"id":"call_1"} reads it"#),
        "{cut}"
    );
    for (session, own, foreign) in [
        (&mut one, "call_0", "call_1"),
        (&mut other, "call_1", "call_0"),
    ] {
        let page = ask(session, "read_output", &json!({"id": own, "limit": 2}));
        assert!(page.ends_with("]\n1\n"), "{page}");
        let refused = ask(session, "read_output", &json!({"id": foreign}));
        assert!(
            refused.contains(&format!("has the id \"{foreign}\"")),
            "{refused}"
        );
        assert!(refused.contains(&format!("cut: \"{own}\"\n")), "{refused}");
    }
}

/// Requests of the modern era have no session, so it isn't known whether two come from the same client.
#[test]
fn a_client_without_a_session_is_told_that_it_cannot_read_on() {
    let server = HttpServer::start_in(CliSandbox::new().tools(TOOLS), &[]);
    let ask = |tool: &str, input: &Value| {
        let request = HttpRequest::post(&modern(1, "tools/call", &call(tool, input)));
        text_of(&server.ask(&request).json()).to_owned()
    };
    let cut = ask("dump", &json!({}));
    assert!(
        cut.contains("bytes cut") && !cut.contains("read_output"),
        "{cut}"
    );
    let refused = ask("read_output", &json!({"id": "call_0"}));
    assert!(refused.contains("This client has no session"), "{refused}");
}
