//! FAULTS 131: canaries in every place where a secret may come by. Whatever a tool, a server or a model does with them,
//! nobody finds one in what toolq writes: not on stdout or stderr, in the log, the files beside it, the events or a plan.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod places;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use places::{Place, asked, sent, spoken};
use serde_json::{Value, json};
use support::{Toolq, response};

/// What a key looks like.
const PLAIN: &str = "c4n4ry-plain-0123456789";
/// All that quotes, JSON and URLs would write otherwise.
const ODD: &str = "c4n4ry \"odd\" o'\\é/+=&%\ttab";

/// Answers every request by what it was, and a path of `/500` by a failure.
fn echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 1 << 16];
            let len = stream.read(&mut request).unwrap_or_default();
            let body = &request[..len];
            let status = if body.starts_with(b"GET /500") {
                "500 No"
            } else {
                "200 OK"
            };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(&[head.as_bytes(), body].concat());
        }
    });
    url
}

fn tools(backing: &str) -> String {
    let schema = "{type: object, properties: {x: {type: string}, n: {type: integer}, list: {type: array}}, additionalProperties: false}";
    format!("secrets: [PLAIN, ODD]\ntools:\n  it:\n    input_schema: {schema}\n    {backing}\n")
}

fn toolq(tools: &str) -> Toolq {
    Toolq::new()
        .tools(tools)
        .env("PLAIN", PLAIN)
        .env("ODD", ODD)
}

/// What must be nowhere: the beginning of a canary, which is the same in both, and its base64 wherever it begins.
fn traces() -> Vec<String> {
    let encoded = (0..3).map(|skip| {
        let encoded = STANDARD.encode([&b"\0\0\0"[..skip], b"c4n4ry"].concat());
        encoded[(skip * 8_usize).div_ceil(6)..(skip + 6) * 8 / 6].to_owned()
    });
    let plain = ["c4n4ry", "%63%34%6e", "%63%34%6E", "tab\"", "u0063"];
    encoded.chain(plain.map(str::to_owned)).collect()
}

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    for trace in traces() {
        assert!(!text.contains(&trace), "{what} has {trace}:\n{text}");
    }
}

/// Everything that a run wrote, but for tools.yaml.
fn written(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, found);
        } else if !path.ends_with("tools.yaml") {
            let bytes = fs::read(&path).unwrap();
            found.push((
                path.display().to_string(),
                String::from_utf8_lossy(&bytes).into_owned(),
            ));
        }
    }
}

/// Runs the calls with all that toolq can write, and looks for canaries in it. Says whether one came by.
fn sweep(name: &str, toolq: Toolq, calls: &[(&str, Value)]) -> bool {
    let ran = toolq.stdin(response(calls)).run(&[
        "run",
        "-v",
        "--progress",
        "plain",
        "--events",
        "events.ndjson",
        "--log",
        "log.jsonl",
    ]);
    assert!(ran.code == 0 || ran.code == 3, "{name}: {}", ran.stderr);
    let mut outputs = vec![
        ("stdout".to_owned(), ran.stdout.clone()),
        ("stderr".to_owned(), ran.stderr.clone()),
    ];
    written(ran.dir.path(), &mut outputs);
    assert!(outputs.len() >= 4, "{name}: no log, no events");
    for (output, text) in &outputs {
        assert_clean(&format!("{name}: {output}"), text);
    }
    outputs.iter().any(|(_, text)| text.contains("[masked]"))
}

/// FAULTS 131.
#[test]
fn a_canary_is_in_no_output() {
    let server = echo_server();
    let places: Vec<Place> = [spoken(), sent(&server), asked()]
        .into_iter()
        .flatten()
        .collect();
    assert!(places.len() >= 12);
    for place in &places {
        let calls = [("it", place.input.clone())];
        let came_by = sweep(place.name, toolq(&tools(&place.backing)), &calls);
        assert_eq!(came_by, !place.is_untold, "{}", place.name);
    }
}

/// FAULTS 131: the names and ids that a model makes up. On stdout an id stays as it is, or no answer would find its call.
#[test]
fn a_canary_in_a_name_is_in_no_output() {
    let long = format!("{}{PLAIN}", "x".repeat(90));
    let longer = format!("{}{PLAIN}", "x".repeat(190));
    let calls = [PLAIN, ODD, &long, &longer].map(|name| (name, json!({})));
    let toolq_with = || toolq(&tools("command: [\"true\"]"));
    assert!(sweep("an unknown tool", toolq_with(), &calls));

    let call = json!({"type": "tool_use", "id": PLAIN, "name": "it", "input": {}});
    let ran = toolq_with()
        .stdin(call.to_string())
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
        .exits(0);
    assert_eq!(ran.json()["tool_use_id"], PLAIN);
    let mut outputs = vec![("stderr".to_owned(), ran.stderr)];
    written(ran.dir.path(), &mut outputs);
    for (output, text) in outputs {
        assert_clean(&output, &text);
    }
}

/// FAULTS 131, 137: a plan shows the real arguments, but for what is secret, however they are quoted.
#[test]
fn a_canary_is_in_no_plan() {
    let backings = [
        "command: {argv: [echo, --, \"{x}\"], env: {K: \"${PLAIN}\", X: \"{x}\"}, stdin: \"{x}\"}",
        "http: {method: POST, url: \"http://127.0.0.1:1/{x}\", query: {k: \"${PLAIN}\", x: \"{x}\"}, headers: {k: \"${PLAIN}\"}, body: {x: \"{x}\", k: \"${ODD}\"}}",
    ];
    let inputs = [PLAIN, ODD, &format!("{ODD}\n\u{1b}[31m")].map(|text| json!({ "x": text }));
    for backing in backings {
        for format in ["text", "json", "mermaid"] {
            let valid = inputs.iter().map(|input| ("it", input.clone()));
            let invalid = [(PLAIN, json!({})), ("it", json!({ODD: 1}))];
            let calls: Vec<_> = valid.chain(invalid).collect();
            let ran = toolq(&tools(backing))
                .stdin(response(&calls))
                .run(&["plan", "-v", "--format", format])
                .exits(0);
            assert_clean(format, &ran.stdout);
            assert_clean("stderr", &ran.stderr);
            let shown = ran.stdout.replace("#91;", "[");
            assert!(shown.contains("[masked"), "{}", ran.stdout);
        }
    }
}

/// FAULTS 131: what is said of files whose names have a canary in them.
#[test]
fn a_canary_is_in_no_message() {
    let tools = tools("command: [echo]");
    let calls = response(&[("it", json!({}))]);
    let run = |arguments: &[&str]| {
        let ran = toolq(&tools)
            .file(&format!("{PLAIN}/tools.yaml"), &tools)
            .stdin(&calls);
        let ran = ran.run(&[&["run", "-v"], arguments].concat());
        assert_clean("stdout", &ran.stdout);
        assert_clean("stderr", &ran.stderr);
        assert!(ran.stderr.contains("[masked]"), "{}", ran.stderr);
        ran
    };
    run(&["--log", &format!("{PLAIN}/none/log.jsonl")]).exits(4);
    run(&["--events", &format!("{PLAIN}/none/events")]).exits(2);
    let ran = run(&[
        "-c",
        &format!("{PLAIN}/tools.yaml"),
        "--log",
        &format!("{PLAIN}.jsonl"),
    ]);
    assert_clean(
        "the log",
        &ran.exits(0).file(&format!("{PLAIN}.jsonl")).unwrap(),
    );
}
