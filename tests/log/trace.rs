//! `toolq log trace`: each field of the events, as the description of the Trace Event Format asks for it.

use serde_json::{Value, json};

use crate::support::{CliOutput, CliSandbox, model_response};

const TOOLS: &str = r#"
rules: [{tools: "*", concurrency_safe: true}]
tools:
  quick: {input_schema: {type: object}, effect: read, command: [echo, done]}
  slow: {input_schema: {type: object}, effect: read, command: [sleep, "0.05"]}
  flaky:
    input_schema: {type: object}
    effect: read
    retry: {times: 1, on: ["exit:75"], backoff: 10ms}
    command: [sh, -c, "if [ -e tried ]; then exit 0; fi; touch tried; exit 75"]
"#;

fn traced_run() -> CliOutput {
    let calls: Vec<(&str, Value)> = ["quick", "slow", "flaky", "slow", "quick", "unknown"]
        .map(|name| (name, json!({})))
        .into();
    let script =
        "\"$TOOLQ\" run -q -j 3 --log log.jsonl > /dev/null; \"$TOOLQ\" log trace log.jsonl";
    CliSandbox::new()
        .tools(TOOLS)
        .stdin(model_response(&calls))
        .run_shell(script)
        .assert_exit(0)
}

#[test]
fn every_event_has_the_fields_of_its_phase() {
    let trace = traced_run().json();
    assert_eq!(trace["displayTimeUnit"], "ms");
    let events = trace["traceEvents"].as_array().unwrap();
    for event in events {
        assert!(
            event["name"].is_string() && event["pid"].is_u64() && event["tid"].is_u64(),
            "{event}"
        );
        // Perfetto takes thread 0 for an idle processor, and the thread with the number of its process for the main one, and puts
        // the spans of both into one row.
        let thread = event["tid"].as_u64().unwrap();
        assert!(thread > 0 && event["tid"] != event["pid"], "{event}");
        match event["ph"].as_str().unwrap() {
            "X" => assert!(
                event["ts"].is_u64() && event["dur"].is_u64() && event["cat"].is_string(),
                "{event}"
            ),
            "i" => assert!(event["ts"].is_u64() && event["s"] == "p", "{event}"),
            "M" => assert!(event["args"]["name"].is_string(), "{event}"),
            other => panic!("a phase that isn't used: {other}"),
        }
    }
    let calls: Vec<&Value> = events
        .iter()
        .filter(|event| event["args"]["tool_use_id"].is_string())
        .collect();
    assert_eq!(calls.len(), 6, "every call has one event");
    let attempts = events
        .iter()
        .filter(|event| event["cat"] == "attempt")
        .count();
    assert_eq!(attempts, 2, "both attempts of `flaky`");
}

/// Viewers draw spans of one thread that overlap without nesting on top of each other.
#[test]
fn spans_of_a_thread_nest_or_follow_each_other() {
    let trace = traced_run().json();
    let events = trace["traceEvents"].as_array().unwrap();
    let mut spans: Vec<(u64, u64, u64)> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let number = |key: &str| event[key].as_u64().unwrap();
            (number("tid"), number("ts"), number("ts") + number("dur"))
        })
        .collect();
    spans.sort_by_key(|(thread, from, to)| (*thread, *from, std::cmp::Reverse(*to)));
    assert!(
        spans.iter().any(|(thread, ..)| *thread != spans[0].0),
        "calls ran at the same time"
    );
    for (index, (thread, from, to)) in spans.iter().enumerate() {
        for (other, later_from, later_to) in &spans[index + 1..] {
            let overlaps = thread == other && later_from < to && later_to > from;
            assert!(
                !overlaps || later_to <= to,
                "{from}..{to} and {later_from}..{later_to}"
            );
        }
    }
}
