//! Locks and limits hold among the calls of different clients.

use std::fs;

use serde_json::{Value, json};

use crate::serve_http::http_client::{HttpClient, HttpRequest};
use crate::serve_http::http_server::HttpServer;
use crate::serve_http::{call, modern, wait_until};
use crate::support::CliSandbox;

/// `edit` notes that it has begun, and ends when the file that `until` names is there.
const TOOLS: &str = r#"
version: 1
tools:
  edit:
    input_schema: &edit {type: object, properties: {path: {type: string}, until: {type: string}}, required: [path, until]}
    paths: [path]
    timeout: 100s
    locks: {write: ["file:{path}"]}
    command: [sh, -c, 'echo "$1" >> begun; until [ -e "$2" ]; do sleep 0.01; done', --, "{path}", "{until}"]
  view:
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    paths: [path]
    effect: read
    locks: {read: ["file:{path}"]}
    command: [sh, -c, 'echo "view $1" >> begun', --, "{path}"]
  single:
    input_schema: *edit
    effect: read
    timeout: 100s
    max_parallel: 1
    command: [sh, -c, 'echo "$1" >> begun; until [ -e "$2" ]; do sleep 0.01; done', --, "{path}", "{until}"]
  hourly:
    input_schema: {type: object}
    effect: read
    rate: 1/h
    command: ["true"]
"#;

fn start() -> HttpServer {
    HttpServer::start_in(CliSandbox::new().tools(TOOLS), &["-q", "--jobs", "8"])
}

/// Makes a call as a client of its own.
fn begin(server: &HttpServer, tool: &str, arguments: &Value) -> HttpClient {
    let mut client = server.connect();
    client.send(&HttpRequest::post(&modern(
        1,
        "tools/call",
        &call(tool, arguments),
    )));
    client
}

fn edit(path: &str) -> Value {
    json!({"path": path, "until": "go"})
}

fn begun(server: &HttpServer) -> Vec<String> {
    let text = fs::read_to_string(server.dir().join("begun")).unwrap_or_default();
    let mut begun: Vec<String> = text.lines().map(str::to_owned).collect();
    begun.sort();
    begun
}

/// Returns the positions in the log of the records of a type.
fn positions(log: &[Value], kind: &str) -> Vec<usize> {
    let records = log.iter().enumerate();
    let found = records.filter(|(_, record)| record["type"] == kind);
    found.map(|(position, _)| position).collect()
}

#[test]
fn edits_of_different_files_run_together_and_those_of_one_file_in_order() {
    let server = start();
    let mut clients = vec![begin(&server, "edit", &edit("./a"))];
    wait_until("the first has begun", || begun(&server) == ["./a"]);
    clients.push(begin(&server, "edit", &edit("./a")));
    clients.push(begin(&server, "view", &json!({"path": "./a"})));
    clients.push(begin(&server, "edit", &edit("./b")));
    clients.push(begin(&server, "view", &json!({"path": "./c"})));
    wait_until("those of other files have begun", || {
        begun(&server) == ["./a", "./b", "view ./c"]
    });
    server.create("go");
    for client in &mut clients {
        assert!(client.read_response().json()["result"]["isError"] == false);
    }
    let ended = server.end();
    let log = ended.log();
    // The second edit of `a` and the view of it began only after the first had ended.
    let first_end = log.iter().position(|record| {
        record["type"] == "tool_result" && record["metadata"]["tool_name"] == "edit"
    });
    let starts = positions(&log, "tool_start");
    assert_eq!(
        starts
            .iter()
            .filter(|start| Some(**start) < first_end)
            .count(),
        3
    );
}

#[test]
fn max_parallel_counts_the_calls_of_all_clients() {
    let server = start();
    let mut clients: Vec<_> = (0..3)
        .map(|_| begin(&server, "single", &edit("./a")))
        .collect();
    wait_until("one has begun", || begun(&server).len() == 1);
    server.create("go");
    for client in &mut clients {
        client.read_response();
    }
    let log = server.end().log();
    let (starts, ends) = (
        positions(&log, "tool_start"),
        positions(&log, "tool_result"),
    );
    assert_eq!((starts.len(), ends.len()), (3, 3));
    assert!(
        ends[0] < starts[1] && ends[1] < starts[2],
        "{starts:?} {ends:?}"
    );
}

#[test]
fn a_rate_counts_the_calls_of_all_clients() {
    let server = start();
    begin(&server, "hourly", &json!({})).read_response();
    let waiting = begin(&server, "hourly", &json!({}));
    let state = server.dir().join("state/toolq/sessions");
    wait_until("the second call is on record", || {
        let mut logs = fs::read_dir(&state)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        logs.any(|log| {
            let text = fs::read_to_string(log).unwrap_or_default();
            text.matches(r#""type":"tool_call""#).count() == 2
        })
    });
    begin(&server, "view", &json!({"path": "./a"})).read_response();
    drop(waiting);
    let log = server.end().log();
    let is_hourly = |start: &&usize| log[**start]["metadata"]["tool_name"] == "hourly";
    let starts = positions(&log, "tool_start");
    assert_eq!(starts.iter().filter(is_hourly).count(), 1);
}
