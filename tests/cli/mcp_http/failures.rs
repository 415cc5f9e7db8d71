//! Servers that break off, answer with something else or too late. `tests/hostile/servers/endpoints/` has many more.

use std::net::TcpListener;

use crate::mcp_http::{no_input, sandbox};
use crate::support::scripted_server::{LEGACY, MODERN, ScriptedServer};

/// A `read` changes nothing, so a response that broke off may be asked for again.
#[test]
fn a_broken_read_is_called_again_as_retry_says() {
    let server = ScriptedServer::start(MODERN);
    let sandbox = sandbox(&server, &no_input(&["break_off"]));
    let tools = std::fs::read_to_string(sandbox.path().join("tools.yaml")).unwrap();
    let tools = tools.replacen(
        "break_off: {effect: read,",
        "break_off: {effect: read, retry: {times: 2, on: [unavailable], backoff: 1ms},",
        1,
    );
    let output = sandbox.tools(&tools).run(&["run", "-q"]).assert_exit(0);
    assert!(output.result_texts()[0].1);
    assert_eq!(server.calls().len(), 3);
}

/// A server may answer with something other than a message.
#[test]
fn what_is_not_the_protocol_is_named() {
    let server = ScriptedServer::start(MODERN);
    let output = sandbox(&server, &no_input(&["page", "redirect"]))
        .run(&["run", "-q"])
        .assert_exit(0);
    let texts = output.result_texts();
    assert!(texts[0].0.contains("text/html"), "{texts:?}");
    assert!(
        texts[1].0.contains("http://elsewhere.example") && !texts[1].0.contains("token=1"),
        "{texts:?}"
    );
}

/// The server is notified in the way of its era, and a `write` is in doubt.
#[test]
fn a_slow_call_times_out_and_the_server_learns_of_it() {
    for script in [MODERN, LEGACY] {
        let server = ScriptedServer::start(script);
        let output = sandbox(&server, &no_input(&["hang", "pay_hang", "echo"]))
            .run(&["run", "-q"])
            .assert_exit(3);
        let texts = output.result_texts();
        assert!(texts[0].0.contains("timed out"), "{texts:?}");
        assert!(texts[1].0.contains("In doubt"), "{texts:?}");
        assert_eq!(texts[2], ("{}".to_owned(), false));
        server.wait_for_abort();
        let methods = server.methods();
        let canceled = methods
            .iter()
            .filter(|method| *method == "notifications/cancelled");
        assert_eq!(
            canceled.count(),
            if script.is_modern { 0 } else { 2 },
            "{methods:?}"
        );
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    for script in [MODERN, LEGACY] {
        let server = ScriptedServer::start(script);
        let output = sandbox(&server, &no_input(&["pay_busy"]))
            .run(&["run", "-q"])
            .assert_exit(0);
        assert_eq!(
            output.result_texts(),
            [("{}".to_owned(), false)],
            "{:?}",
            server.methods()
        );
    }
}

/// Nothing was sent, so nothing is in doubt.
#[test]
fn a_server_that_is_not_there_was_not_called() {
    let server = ScriptedServer::start(MODERN);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let sandbox = sandbox(&server, &no_input(&["pay_echo"]));
    let tools = std::fs::read_to_string(sandbox.path().join("tools.yaml")).unwrap();
    let output = sandbox
        .tools(&tools.replace(server.url.as_str(), &format!("http://{address}/mcp")))
        .run(&["run", "-q"])
        .assert_exit(0);
    let (text, is_error) = &output.result_texts()[0];
    assert!(
        *is_error && text.contains("refused") && !text.contains("In doubt"),
        "{text}"
    );
}
