//! `run` does what `plan` prints.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use crate::support::{CliSandbox, full_or_short, model_response, parse_json_lines};
use proptest::prelude::*;
use serde_json::{Value, json};

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
  stops_on_failure: {description: d, input_schema: {type: object, additionalProperties: false}, effect: read, on_failure: stop, command: ["true"]}
"#;

/// Calls: tool, input, and whether the call is concurrency-safe (`None` if it will be rejected).
fn call_strategy() -> impl Strategy<Value = Vec<(&'static str, Value, Option<bool>)>> {
    let call = prop_oneof![
        4 => Just(("look", json!({}), Some(true))),
        2 => Just(("change", json!({}), Some(false))),
        1 => Just(("fails", json!({}), Some(true))),
        1 => Just(("depends", json!({"safe": true}), Some(true))),
        1 => Just(("depends", json!({"safe": false}), Some(false))),
        1 => Just(("look", json!({"surplus": 1}), None)),
        1 => Just(("unknown", json!({}), None)),
        1 => Just(("stops_on_failure", json!({}), Some(true))),
    ];
    prop::collection::vec(call, 1..12)
}

/// A second implementation of the batching rule: an unsafe call is a batch of its own.
fn expected_batches(calls: &[(&str, Value, Option<bool>)]) -> Vec<Vec<u64>> {
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

fn planned_batches(plan: &Value) -> Vec<Vec<u64>> {
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

/// Returns the positions of the started calls by batch, and asserts that batches didn't overlap.
fn started_batches(log: &[Value]) -> Vec<Vec<u64>> {
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
                        "batch {batch} started before the previous one ended"
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
    #![proptest_config(ProptestConfig { cases: full_or_short(24, 8), ..ProptestConfig::default() })]

    /// A call that isn't safe runs alone, in its place in the order, and no more calls run at once than allowed.
    #[test]
    fn plan_and_run_agree(calls in call_strategy()) {
        let input = model_response(&calls.iter().map(|(name, arguments, _)| (*name, arguments.clone())).collect::<Vec<_>>());
        let plan = CliSandbox::new().tools(TOOLS).stdin(&input).run(&["plan", "--format", "json"]).assert_exit(0);
        let batches = planned_batches(&parse_json_lines(&plan.stdout)[0]);
        prop_assert_eq!(&batches, &expected_batches(&calls));
        let run = CliSandbox::new().tools(TOOLS).stdin(&input).run(&["run"]);
        let run = run.assert_exit(0);
        prop_assert_eq!(run.results().len(), calls.len());
        let mut started = started_batches(&run.log_records());
        for batch in &mut started {
            batch.sort_unstable();
        }
        prop_assert_eq!(started, batches);
    }
}

const LOCKED_TOOLS: &str = r#"
version: 1
concurrency: 4
tools:
  edit: {input_schema: &path {type: object, properties: {path: {type: string}}, required: [path]}, locks: {write: ["file:{path}"]}, command: ["true"]}
  view: {input_schema: *path, effect: read, locks: {read: ["file:{path}"]}, command: ["true"]}
  table: {input_schema: *path, locks: {read: ["file:shared"], write: ["table:{path}"]}, command: ["true"]}
  look: {input_schema: *path, effect: read, command: ["true"]}
  change: {input_schema: *path, command: ["true"]}
"#;

/// Calls: tool, and a path. `d` is above `d/a`.
fn locked_call_strategy() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let tool = prop::sample::select(vec![
        "edit", "edit", "edit", "view", "view", "table", "look", "change",
    ]);
    let path = prop::sample::select(vec!["a", "b", "d", "d/a", "d/b", "shared"]);
    prop::collection::vec((tool, path), 1..12)
}

/// Whether a call must wait for one before it: the rule, stated for these tools.
fn must_wait(call: (&str, &str), before: (&str, &str)) -> bool {
    // What a call locks: whether it writes, and a path. `None` without locks.
    let locks = |(tool, path): (&str, &str)| match tool {
        "edit" => Some(vec![(true, format!("{path}/"))]),
        "view" => Some(vec![(false, format!("{path}/"))]),
        "table" => Some(vec![
            (false, "shared/".to_owned()),
            (true, format!("table:{path}/")),
        ]),
        _ => None,
    };
    let is_safe = |tool: &str| matches!(tool, "view" | "look");
    match (locks(call), locks(before)) {
        (Some(wanted), Some(held)) => wanted.iter().any(|(writes, path)| {
            held.iter().any(|(other_writes, other)| {
                (*writes || *other_writes)
                    && (path.starts_with(other) || other.starts_with(path))
                    && path.starts_with("table:") == other.starts_with("table:")
                    && (!path.starts_with("table:") || path == other)
            })
        }),
        (Some(_), None) => !is_safe(before.0),
        (None, _) => !(is_safe(call.0) && is_safe(before.0)),
    }
}

/// Returns for each call the indexes of the records of its start and of its end.
fn intervals(log: &[Value], calls: usize) -> Vec<(usize, usize)> {
    let index_of = |kind: &str, position: usize| {
        let is_call = |record: &&Value| {
            record["type"] == "tool_call" && record["metadata"]["position"] == position
        };
        let call = log.iter().find(is_call).unwrap();
        let is_found = |record: &Value| record["type"] == kind && record["parentId"] == call["id"];
        log.iter().position(is_found).unwrap()
    };
    let interval = |position| {
        (
            index_of("tool_start", position),
            index_of("tool_result", position),
        )
    };
    (0..calls).map(interval).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: full_or_short(24, 8), ..ProptestConfig::default() })]

    /// A call that waits in the plan also waits in the run, and the plan has exactly the waits that the rule requires.
    #[test]
    fn plan_and_run_agree_about_locks(calls in locked_call_strategy()) {
        let input = model_response(&calls.iter().map(|(tool, path)| (*tool, json!({"path": path}))).collect::<Vec<_>>());
        let sandbox = || CliSandbox::new().tools(LOCKED_TOOLS).stdin(&input);
        let plan = sandbox().run(&["plan", "--format", "json"]).assert_exit(0);
        let plan = parse_json_lines(&plan.stdout).remove(0);
        let planned = plan["batches"].as_array().unwrap().iter();
        let planned: Vec<&Value> = planned.flat_map(|batch| batch["calls"].as_array().unwrap()).collect();
        let has_locks = calls.iter().any(|(tool, _)| !matches!(*tool, "look" | "change"));
        prop_assert_eq!(planned[0].get("waits_for").is_some(), has_locks);
        let must = |call: usize| (0..call).filter(|before| must_wait(calls[call], calls[*before])).collect::<Vec<_>>();
        if has_locks {
            let mut said: Vec<BTreeSet<usize>> = Vec::new();
            let mut expected: Vec<BTreeSet<usize>> = Vec::new();
            for (position, call) in planned.iter().enumerate() {
                let direct: Vec<usize> = serde_json::from_value(call["waits_for"].clone()).unwrap();
                let closure = |direct: &[usize], before: &[BTreeSet<usize>]| -> BTreeSet<usize> {
                    direct.iter().flat_map(|call| before[*call].iter().chain([call])).copied().collect()
                };
                said.push(closure(&direct, &said));
                expected.push(closure(&must(position), &expected));
            }
            prop_assert_eq!(said, expected);
        }
        let mut batches: Vec<Vec<u64>> = Vec::new();
        for position in 0..calls.len() {
            let joins = batches.last().is_some_and(|batch| {
                batch.iter().all(|before| !must(position).iter().any(|other| *other as u64 == *before))
            });
            if !joins {
                batches.push(Vec::new());
            }
            batches.last_mut().unwrap().push(position as u64);
        }
        prop_assert_eq!(planned_batches(&plan), batches);
        let run = sandbox().run(&["run"]).assert_exit(0);
        let intervals = intervals(&run.log_records(), calls.len());
        for call in 0..calls.len() {
            for before in must(call) {
                prop_assert!(intervals[before].1 < intervals[call].0, "call {call} didn't wait for {before}");
            }
        }
    }
}

/// The plan shows the URL as it is sent. In both, a value is percent-encoded and can't add a query parameter.
#[test]
fn the_plan_shows_a_request_as_it_is_sent() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", server.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        sender.send(line).unwrap();
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
        stream.write_all(response).unwrap();
    });
    let tools = format!(
        "version: 1\ntools:\n  find:\n    description: d\n    input_schema: {{type: object, properties: {{q: {{type: string}}}}, required: [q]}}\n    \
         effect: read\n    http: {{url: \"{origin}/find?v=1\", query: {{\"q q\": \"{{q}}\", all: \"yes, all\"}}}}\n"
    );
    let run_toolq = |arguments: &[&str]| {
        let input = model_response(&[("find", json!({"q": "2024-01-01&a=b c?#/~ü"}))]);
        CliSandbox::new()
            .tools(&tools)
            .stdin(input)
            .run(arguments)
            .assert_exit(0)
    };
    let plan = run_toolq(&["plan"]).stdout;
    assert!(
        plan.contains("=2024-01-01%26a%3Db%20c%3F%23%2F%7E%C3%BC&"),
        "{plan}"
    );
    run_toolq(&["run"]);
    let sent = receiver.recv().unwrap();
    let target = sent.split(' ').nth(1).unwrap();
    assert!(
        plan.contains(&format!("GET {origin}{target}\n")),
        "{sent}{plan}"
    );
}

#[test]
fn a_text_plan_has_a_paragraph_per_turn_and_a_json_plan_a_line() {
    let input = model_response(&[("look", json!({})), ("look", json!({}))]);
    let plan = |arguments: &[&str]| {
        let toolq = CliSandbox::new()
            .tools(TOOLS)
            .stdin(format!("{input}\n{input}\n"));
        toolq.run(arguments).assert_exit(0).stdout
    };
    let text = plan(&["plan", "-j", "1"]);
    assert!(
        text.contains("batch 0: 2 calls, 1 at a time (parallel by effect)\n"),
        "{text}"
    );
    assert!(text.contains("\n\nturn 1: 2 calls"), "{text}");
    let turns: Vec<&str> = text.split("turn ").collect();
    assert_eq!(
        turns[1].trim_end().replacen("0:", "1:", 1),
        turns[2].trim_end()
    );
    assert_eq!(
        parse_json_lines(&plan(&["plan", "--format", "json"])).len(),
        2
    );
}
