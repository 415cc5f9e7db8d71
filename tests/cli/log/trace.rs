//! `toolq log export --format trace`: each field of the events, as the description of the Trace Event Format asks for it.

use serde_json::{Value, json};

use crate::log::log_builder::LogBuilder;
use crate::support::{CliOutput, CliSandbox, model_response, parse_json_lines};

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
    let script = "\"$TOOLQ\" run -q -j 3 --log log.jsonl > /dev/null; \"$TOOLQ\" log export --format trace log.jsonl";
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

/// `ts` and `dur` are the times of the log, in microseconds; each attempt lies within its call.
#[test]
fn spans_have_the_times_of_the_log() {
    let ran = traced_run();
    let log = parse_json_lines(&ran.file("log.jsonl").unwrap());
    let trace = ran.json();
    let events = trace["traceEvents"].as_array().unwrap();
    let number = |event: &Value, key: &str| event[key].as_u64().unwrap();
    let calls = events
        .iter()
        .filter(|event| event["args"]["tool_use_id"].is_string());
    for call in calls {
        let id = &call["args"]["tool_use_id"];
        let at = |kind: &str| {
            let record = log
                .iter()
                .find(|record| record["type"] == kind && record["metadata"]["tool_use_id"] == *id);
            record.map(|record| number(record, "timestamp") * 1000)
        };
        let requested = at("tool_call").unwrap();
        let (started, ended) = (at("tool_start"), at("tool_result").unwrap());
        assert_eq!(number(call, "ts"), started.unwrap_or(requested), "{call}");
        let took = started.map_or(0, |started| ended - started);
        assert_eq!(number(call, "dur"), took, "{call}");
        assert_eq!(call["cat"] == "rejected", started.is_none(), "{call}");
    }
    let flaky = events
        .iter()
        .find(|event| event["name"] == "flaky")
        .unwrap();
    for attempt in events.iter().filter(|event| event["cat"] == "attempt") {
        let end = |event: &Value| number(event, "ts") + number(event, "dur");
        assert_eq!(attempt["tid"], flaky["tid"]);
        assert!(
            number(attempt, "ts") >= number(flaky, "ts") && end(attempt) <= end(flaky),
            "{attempt}"
        );
    }
}

/// In a viewer, a call that an agent made is nested below the agent's own call.
#[test]
fn the_calls_of_an_agent_nest_in_its_span() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let agent = log.call(turn, "expert", &json!({}));
    log.start(agent, "expert", 1);
    let agent_turn = json!({"turn": 0, "agent": "expert"});
    let inner = log.add_record("turn", Some(agent), &Value::Null, &agent_turn);
    for _ in 0..2 {
        log.timestamp += 10;
        let call = log.call(inner, "look", &json!({}));
        log.start(call, "look", 1);
        log.timestamp += 10;
        log.result(call, "look", 10, &json!("seen"));
    }
    log.timestamp += 10;
    log.result(agent, "expert", 50, &json!("known"));
    log.session_end(session);
    let sandbox = CliSandbox::new().file("log.jsonl", log.text());
    let trace = sandbox
        .run(&["log", "export", "--format", "trace", "log.jsonl"])
        .assert_exit(0)
        .json();
    let events = trace["traceEvents"].as_array().unwrap();
    let spans = events.iter().filter(|event| event["ph"] == "X");
    let begin = log.timestamp - 50;
    let found: Vec<(&str, u64, u64, bool)> = spans
        .map(|span| {
            let ts = span["ts"].as_u64().unwrap() / 1000 - begin;
            let is_in_first_lane = span["tid"]
                == events
                    .iter()
                    .find(|event| event["name"] == "expert")
                    .unwrap()["tid"];
            (
                span["name"].as_str().unwrap(),
                ts,
                span["dur"].as_u64().unwrap() / 1000,
                is_in_first_lane,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("expert", 0, 50, true),
            ("look", 10, 10, true),
            ("look", 30, 10, true)
        ]
    );
}
