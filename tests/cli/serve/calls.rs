//! Calls at the same time, their cancellation, and their progress.

use std::collections::BTreeSet;

use crate::serve::client::{Client, text_of};
use crate::support::waiting::wait_until_gone;
use crate::support::{CliSandbox, full_or_short};
use serde_json::json;

/// A slow call doesn't hold up the answers of those after it.
#[test]
fn reads_run_at_the_same_time_and_each_is_answered_when_it_ends() {
    let mut client = Client::initialized(&[]);
    client.call("slow", "wait_for", &json!({"file": "go"}));
    client.call("one", "meet", &json!({"me": "a", "other": "b"}));
    client.call("two", "meet", &json!({"me": "b", "other": "a"}));
    let met = [client.receive(), client.receive()];
    assert!(met.iter().all(|answer| text_of(answer).0 == "met"));
    client.create("go");
    let last = client.receive();
    assert_eq!(last["id"], "slow");
    assert_eq!(text_of(&last).0, "found go");
    assert_eq!(client.leave().code, Some(0));
}

/// A client may call at the same time what must not run together.
#[test]
fn a_write_runs_alone() {
    let mut client = Client::initialized(&[]);
    client.call(1, "wait_for", &json!({"file": "read"}));
    client.pids(1);
    client.call(2, "pay", &json!({"file": "paid"}));
    client.call(3, "echo", &json!({"text": "after"}));
    client.create("read");
    client.pids(2);
    client.create("paid");
    let answers = (0..3).map(|_| client.receive()["id"].as_u64().unwrap());
    assert_eq!(answers.collect::<BTreeSet<_>>().len(), 3);
    let ended = client.leave();
    let types = ended.record_types();
    let place = |wanted: &str| types.iter().position(|found| found == wanted).unwrap();
    assert!(
        place("tool_result wait_for") < place("tool_start pay"),
        "{types:?}"
    );
    assert!(
        place("tool_result pay") < place("tool_start echo"),
        "{types:?}"
    );
}

/// The client has said that it waits for none.
#[test]
fn a_canceled_call_ends_with_its_processes_and_gets_no_answer() {
    let mut client = Client::initialized(&[]);
    client.call("long", "hang", &json!({}));
    let pids = client.pids(2);
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long","reason":"enough"}}"#,
    );
    wait_until_gone(&pids);
    assert_eq!(client.result(2, "echo", &json!({"text": "hi"})).0, "hi");
    let ended = client.leave();
    assert_eq!(ended.rest, [""; 0], "no answer to what was canceled");
    let log = ended.log();
    let end = log
        .iter()
        .find(|record| record["metadata"]["status"] == "interrupted");
    assert!(
        end.unwrap().to_string().contains("the client canceled it"),
        "{end:?}"
    );
}

/// It isn't known whether it has paid.
#[test]
fn a_write_that_is_canceled_while_it_runs_is_in_doubt_and_holds_up_no_other() {
    let mut client = Client::initialized(&[]);
    client.call(1, "pay", &json!({"file": "paid"}));
    let pids = client.pids(1);
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    wait_until_gone(&pids);
    client.create("other");
    let (text, is_error) = client.result(2, "pay", &json!({"file": "other"}));
    assert_eq!((text.as_str(), is_error), ("found other", false));
    let ended = client.leave();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let log = ended.log();
    let in_doubt = log
        .iter()
        .filter(|record| record["metadata"]["status"] == "in_doubt");
    assert_eq!(in_doubt.count(), 1);
}

#[test]
fn a_call_that_is_canceled_while_it_waits_never_starts() {
    let mut client = Client::initialized(&[]);
    client.call(1, "pay", &json!({"file": "paid"}));
    client.pids(1);
    client.call(2, "pay", &json!({"file": "never"}));
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    );
    client.create("paid");
    assert_eq!(text_of(&client.receive()).0, "found paid");
    assert_eq!(client.result(3, "echo", &json!({"text": "hi"})).0, "hi");
    let ended = client.leave();
    let starts = ended.record_types();
    let starts = starts.iter().filter(|found| *found == "tool_start pay");
    assert_eq!(starts.count(), 1);
    assert!(
        ended
            .log()
            .iter()
            .any(|record| record["metadata"]["status"] == "not_executed")
    );
}

#[test]
fn progress_goes_to_a_client_that_asked_for_it() {
    let mut client = Client::initialized(&[]);
    let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": "p1"}});
    client.send(1, "tools/call", &params);
    let first = client.receive();
    assert_eq!(first["method"], "notifications/progress");
    assert_eq!(
        first["params"],
        json!({"progressToken": "p1", "progress": 0.5, "total": 1.0, "message": "half of [masked]"})
    );
    client.create("more");
    let second = client.receive();
    assert_eq!(second["params"]["message"], "more");
    assert!(second["params"]["progress"].as_f64() > Some(0.5));
    client.create("go");
    assert_eq!(text_of(&client.receive()).0, "done");
    assert_eq!(client.result(2, "work", &json!({})).0, "done");
}

/// A program may write it right before it ends.
#[test]
fn the_last_progress_comes_before_the_answer() {
    let tools = r#"
version: 1
tools:
  finish:
    input_schema: {type: object}
    effect: read
    command: [sh, -c, 'echo "{\"tip\":\"last\"}" >&3; echo done']
"#;
    let mut client = Client::start(CliSandbox::new().tools(tools), &["serve"]);
    client.initialize();
    for id in 0..20 {
        let params = json!({"name": "finish", "arguments": {}, "_meta": {"progressToken": id}});
        client.send(id, "tools/call", &params);
    }
    let mut told = BTreeSet::new();
    let mut answered = 0;
    while answered < 20 {
        let message = client.receive();
        if message["params"]["message"] == "last" {
            told.insert(message["params"]["progressToken"].to_string());
        } else if message["id"].is_number() {
            answered += 1;
            assert!(told.contains(&message["id"].to_string()), "{message}");
        }
    }
}

#[test]
fn a_client_that_wants_progress_hears_of_a_silent_call() {
    let mut client = Client::initialized(&[]);
    let params =
        json!({"name": "wait_for", "arguments": {"file": "go"}, "_meta": {"progressToken": 0}});
    client.send(1, "tools/call", &params);
    for _ in 0..full_or_short(2, 1) {
        assert_eq!(client.receive()["params"]["progressToken"], 0);
    }
    client.create("go");
    assert_eq!(text_of(&client.receive()).0, "found go");
}

#[test]
fn a_client_with_too_many_open_calls_is_told_so() {
    let mut client = Client::initialized(&[]);
    for id in 0..=256 {
        client.call(id, "pay", &json!({"file": "paid"}));
    }
    let refused = client.receive();
    assert_eq!(refused["id"], 256);
    let (text, is_error) = text_of(&refused);
    assert!(is_error && text.contains("256 calls are open"), "{text}");
    client.create("paid");
    // Each is answered once its result is durable, and many become so at once.
    let mut answered: Vec<u64> = (0..256)
        .filter_map(|_| client.receive()["id"].as_u64())
        .collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..256));
}

/// Whoever has an answer can rely on it: it is on record, even if the server is killed right then.
#[test]
fn an_answer_is_on_record_before_the_client_has_it() {
    let mut client = Client::initialized(&["--log", "serve.jsonl"]);
    for count in 1..=full_or_short(500, 100) {
        client.result(count, "echo", &json!({"text": "hi"}));
        let log = std::fs::read_to_string(client.dir().join("serve.jsonl")).unwrap();
        assert_eq!(log.matches(r#""type":"tool_result""#).count(), count);
    }
}

/// What the log shows about calls that ran at the same time, each in a turn of its own.
#[test]
fn log_show_shows_each_call_once() {
    let mut client = Client::initialized(&["--log", "serve.jsonl"]);
    client.call("slow", "wait_for", &json!({"file": "go"}));
    client.pids(1);
    assert_eq!(
        client.result("fast", "echo", &json!({"text": "hi"})).0,
        "hi"
    );
    client.create("go");
    client.receive();
    let ended = client.leave();
    let show = ["log", "show", "serve.jsonl"];
    let shown = ended.sandbox.command(&show).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(!shown.contains("no result"), "{shown}");
    for id in ["turn 0: slow", "turn 1: fast"] {
        assert_eq!(shown.matches(id).count(), 1, "{shown}");
    }
}
