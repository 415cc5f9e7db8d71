//! Sessions of the legacy era that the server forgets.

use serde_json::{Value, json};

use crate::mcp_http::sandbox;
use crate::support::scripted_server::{LEGACY, Script, ScriptedServer};

const FORGETFUL: Script = Script {
    calls_per_session: 1,
    ..LEGACY
};

fn count(server: &ScriptedServer, method: &str) -> usize {
    let methods = server.methods();
    methods.iter().filter(|found| *found == method).count()
}

/// A server that forgets the session gets a `read` again, once.
#[test]
fn a_read_begins_another_session_and_is_called_again() {
    let server = ScriptedServer::start(FORGETFUL);
    let calls = [("pay_echo", json!({"n": 1})), ("echo", json!({"n": 2}))];
    let output = sandbox(&server, &calls).run(&["run", "-q"]).assert_exit(0);
    let texts = [r#"{"n":1}"#, r#"{"n":2}"#].map(|text| (text.to_owned(), false));
    assert_eq!(output.result_texts(), texts);
    assert_eq!(count(&server, "initialize"), 2);
}

/// The server refused the call, but only the model may decide to make it again.
#[test]
fn a_write_is_not_called_again() {
    let server = ScriptedServer::start(FORGETFUL);
    let calls = [1, 2, 3].map(|n| ("pay_echo", json!({"n": n})));
    let output = sandbox(&server, &calls).run(&["run", "-q"]).assert_exit(0);
    let texts = output.result_texts();
    assert_eq!(texts[0], (r#"{"n":1}"#.to_owned(), false));
    assert!(texts[1].1 && texts[1].0.contains("session"), "{texts:?}");
    assert_eq!(texts[2], (r#"{"n":3}"#.to_owned(), false));
    assert_eq!(server.calls().len(), 3);
}

/// A server that forgets its session at once gets the call twice, but no more often.
#[test]
fn a_session_that_is_never_known_ends_the_call() {
    let server = ScriptedServer::start(Script {
        calls_per_session: 0,
        ..LEGACY
    });
    let output = sandbox(&server, &[("echo", json!({}))])
        .run(&["run", "-q"])
        .assert_exit(0);
    assert!(output.result_texts()[0].1);
    assert_eq!(server.calls().len(), 2);
}

/// The run continues when a session ends, so the record of that end must not say that the run had ended.
#[test]
fn the_end_of_a_forgotten_session_says_why() {
    let server = ScriptedServer::start(FORGETFUL);
    let calls = [1, 2].map(|n| ("echo", json!({"n": n})));
    let output = sandbox(&server, &calls)
        .run(&["run", "-q", "--log", "log.jsonl"])
        .assert_exit(0);
    let log = output.file("log.jsonl").unwrap();
    let ends: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|record: &Value| record["type"] == "server_end")
        .collect();
    assert_eq!(ends.len(), 2, "{log}");
    let forgotten = &ends[0]["metadata"];
    assert_eq!(forgotten["cause"], "given_up", "{ends:?}");
    let error = forgotten["error"].as_str().unwrap();
    assert!(error.contains("no longer knew the session"), "{error}");
    assert_eq!(ends[1]["metadata"]["cause"], "run_ended", "{ends:?}");
}
