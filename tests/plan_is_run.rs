//! What `plan` prints is what `run` does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Toolq, json_lines, response};

const TOOLS: &str = r#"
version: 1
concurrency: 4
tools:
  look: {description: d, input_schema: {type: object, additionalProperties: false}, effect: read, command: ["true"]}
  change: {description: d, input_schema: {type: object}, command: ["true"]}
  fails: {description: d, input_schema: {type: object}, effect: read, command: ["false"]}
  depends:
    description: d
    input_schema: {type: object, properties: {safe: {type: boolean}}}
    concurrency_safe: {when: {properties: {safe: {const: true}}, required: [safe]}}
    command: ["true"]
  ends: {description: d, input_schema: {type: object, additionalProperties: false}, effect: read, on_failure: stop, command: ["true"]}
"#;

/// A call, and whether it is safe; none where it will not run.
fn calls() -> impl Strategy<Value = Vec<(&'static str, Value, Option<bool>)>> {
    let call = prop_oneof![
        4 => Just(("look", json!({}), Some(true))),
        2 => Just(("change", json!({}), Some(false))),
        1 => Just(("fails", json!({}), Some(true))),
        1 => Just(("depends", json!({"safe": true}), Some(true))),
        1 => Just(("depends", json!({"safe": false}), Some(false))),
        1 => Just(("look", json!({"surplus": 1}), None)),
        1 => Just(("unknown", json!({}), None)),
        1 => Just(("ends", json!({}), Some(true))),
    ];
    prop::collection::vec(call, 1..12)
}

/// The rule written a second time: what runs is cut after every unsafe call and before it.
fn expected(calls: &[(&str, Value, Option<bool>)]) -> Vec<Vec<u64>> {
    let mut batches: Vec<(bool, Vec<u64>)> = Vec::new();
    for (position, (_, _, safe)) in (0..).zip(calls) {
        match (safe, batches.last_mut()) {
            (None, _) => {}
            (Some(true), Some((true, batch))) => batch.push(position),
            (Some(safe), _) => batches.push((*safe, vec![position])),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

fn planned(plan: &Value) -> Vec<Vec<u64>> {
    let positions = |batch: &Value| {
        let calls = batch["calls"].as_array().unwrap();
        calls
            .iter()
            .map(|call| call["position"].as_u64().unwrap())
            .collect()
    };
    plan["batches"]
        .as_array()
        .unwrap()
        .iter()
        .map(positions)
        .collect()
}

/// The positions of the calls that started, batch after batch, and that no batch overlapped another.
fn ran(log: &[Value]) -> Vec<Vec<u64>> {
    let call = |record: &Value| {
        log.iter()
            .find(|other| other["id"] == record["parentId"])
            .map(|call| call["metadata"].clone())
            .unwrap()
    };
    let mut batches: Vec<Vec<u64>> = Vec::new();
    let mut running = 0;
    for record in log {
        match record["type"].as_str().unwrap() {
            "tool_start" => {
                let metadata = call(record);
                let batch = usize::try_from(metadata["batch"].as_u64().unwrap()).unwrap();
                if batch == batches.len() {
                    assert_eq!(
                        running, 0,
                        "batch {batch} started before the one before it ended"
                    );
                    batches.push(Vec::new());
                }
                assert_eq!(batch + 1, batches.len());
                batches[batch].push(metadata["position"].as_u64().unwrap());
                running += 1;
            }
            "tool_result" if record["metadata"]["attempts"] != 0 => running -= 1,
            _ => {}
        }
    }
    batches
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn plan_and_run_agree(calls in calls()) {
        let asked = response(&calls.iter().map(|(name, input, _)| (*name, input.clone())).collect::<Vec<_>>());
        let plan = Toolq::new().tools(TOOLS).stdin(&asked).run(&["plan", "--format", "json"]).exits(0);
        let batches = planned(&json_lines(&plan.stdout)[0]);
        prop_assert_eq!(&batches, &expected(&calls));
        let run = Toolq::new().tools(TOOLS).stdin(&asked).run(&["run"]);
        let run = run.exits(0);
        prop_assert_eq!(run.results().len(), calls.len());
        let mut started = ran(&run.log());
        for batch in &mut started {
            batch.sort_unstable();
        }
        prop_assert_eq!(started, batches);
    }
}

/// FAULTS 43: a value stays in its pair, in what is sent and in what is shown.
#[test]
fn a_request_is_shown_as_it_is_sent() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", server.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        sender.send(line).unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
        stream.write_all(answer).unwrap();
    });
    let tools = format!(
        "version: 1\ntools:\n  find:\n    description: d\n    input_schema: {{type: object, properties: {{q: {{type: string}}}}, required: [q]}}\n    \
         effect: read\n    http: {{url: \"{origin}/find?v=1\", query: {{\"q q\": \"{{q}}\", all: \"yes, all\"}}}}\n"
    );
    let ask = |arguments: &[&str]| {
        let asked = response(&[("find", json!({"q": "2024-01-01&a=b c?#/~ü"}))]);
        Toolq::new()
            .tools(&tools)
            .stdin(asked)
            .run(arguments)
            .exits(0)
    };
    let plan = ask(&["plan"]).stdout;
    assert!(
        plan.contains("=2024-01-01%26a%3Db+c%3F%23%2F%7E%C3%BC&"),
        "{plan}"
    );
    ask(&["run"]);
    let sent = receiver.recv().unwrap();
    let target = sent.split(' ').nth(1).unwrap();
    assert!(
        plan.contains(&format!("GET {origin}{target}\n")),
        "{sent}{plan}"
    );
}

#[test]
fn turns_are_paragraphs_and_programs_get_lines() {
    let asked = response(&[("look", json!({})), ("look", json!({}))]);
    let plan = |arguments: &[&str]| {
        let toolq = Toolq::new()
            .tools(TOOLS)
            .stdin(format!("{asked}\n{asked}\n"));
        toolq.run(arguments).exits(0).stdout
    };
    let text = plan(&["plan", "-j", "1"]);
    assert!(text.contains("batch 1: 2 calls, 1 at a time\n"), "{text}");
    assert!(text.contains("\n\nturn 1: 2 calls"), "{text}");
    let turns: Vec<&str> = text.split("turn ").collect();
    assert_eq!(turns[1].trim_end().replace("0:", "1:"), turns[2].trim_end());
    assert_eq!(json_lines(&plan(&["plan", "--format", "json"])).len(), 2);
}
