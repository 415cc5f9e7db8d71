//! docs/streams.md, line by line.

use std::fs;

use serde_json::{Value, json};

use crate::follow_control::host::Host;
use crate::support::{parse_json_lines, repository_root};

/// Returns the blocks of a language in docs/streams.md.
fn blocks(language: &str) -> Vec<String> {
    let page = fs::read_to_string(repository_root().join("docs/streams.md")).unwrap();
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// Plays a session. What no document can know is written as "…" there.
fn play(tools: &str, session: &str) -> Host {
    let mut host = Host::start(tools, &["-q"]);
    assert!(session.lines().count() > 8, "{session}");
    for line in session.lines() {
        if let Some(line) = line.strip_prefix("> ") {
            host.send(line);
        } else {
            let expected: Value = serde_json::from_str(&line[2..]).unwrap();
            let mut read = host.read();
            let call = read.get_mut("call");
            if let Some(key) = call.and_then(|call| call.get_mut("idempotency_key")) {
                *key = json!("…");
            }
            assert_eq!(read, expected);
        }
    }
    host
}

#[test]
fn the_documented_session_is_true() {
    let host = play(&blocks("yaml")[0], &blocks("session")[0]);
    let end = host.end();
    assert_eq!((end.code, end.lines.len()), (3, 0));
    let log = fs::read_to_string(end.dir.join("log.jsonl")).unwrap();
    let means: Vec<Value> = parse_json_lines(&log)
        .iter()
        .filter(|record| record["type"] == "approval")
        .map(|record| record["metadata"]["by"].clone())
        .collect();
    assert_eq!(means, ["control", "control"]);
}

#[test]
fn the_documented_session_with_host_tools_is_true() {
    let host = play("", &blocks("session")[1]);
    let end = host.end();
    assert_eq!((end.code, end.lines.len()), (3, 0));
}
