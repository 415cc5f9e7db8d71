//! A stream and the equivalent document have the same plan and the same results.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::Value;

use crate::support::vendor_messages::{StreamedCall, Vendor};
use crate::support::{CliSandbox, full_or_short, parse_json_lines};

const TOOLS: &str = r#"
version: 1
concurrency: 4
tools:
  look: {description: d, input_schema: {type: object, additionalProperties: false}, effect: read, command: [echo, look]}
  alone: {description: d, input_schema: {type: object}, effect: read, concurrency_safe: false, command: [echo, alone]}
  change: {description: d, input_schema: {type: object}, command: [echo, change]}
  fails: {description: d, input_schema: {type: object}, effect: read, command: ["false"]}
  stops_on_failure: {description: d, input_schema: {type: object, additionalProperties: false}, effect: idempotent, on_failure: stop, command: [echo, stops]}
"#;

fn call_strategy() -> impl Strategy<Value = Vec<StreamedCall<'static>>> {
    let ids = prop::sample::select(&["a", "b", "c", "d", "e", "f", "g", "h"][..]);
    let names = prop::sample::select(
        &[
            "look",
            "look",
            "alone",
            "change",
            "fails",
            "stops_on_failure",
            "unknown",
        ][..],
    );
    let inputs = prop::sample::select(&["{}", "{}", "{}", r#"{"surplus":1.50}"#, "[1]"][..]);
    prop::collection::vec((ids, names, inputs), 1..8)
}

/// Runs toolq on a file with this text.
fn run_on_input(arguments: &[&str], text: &str) -> crate::support::CliOutput {
    let arguments = [arguments, &["input"]].concat();
    CliSandbox::new()
        .tools(TOOLS)
        .file("input", text)
        .run(&arguments)
}

/// Returns the positions of the calls in each batch of a plan.
fn planned_batches(plan: &str) -> Vec<Vec<u64>> {
    let plan = &parse_json_lines(plan)[0];
    let positions = |batch: &Value| {
        batch["calls"]
            .as_array()
            .unwrap()
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

/// Returns the positions of the calls in each batch that ran.
fn started_batches(log: &[Value]) -> Vec<Vec<u64>> {
    let mut batches: Vec<Vec<u64>> = Vec::new();
    for record in log.iter().filter(|record| record["type"] == "tool_start") {
        let call = log
            .iter()
            .find(|other| other["id"] == record["parentId"])
            .unwrap();
        let batch = usize::try_from(call["metadata"]["batch"].as_u64().unwrap()).unwrap();
        batches.resize(batches.len().max(batch + 1), Vec::new());
        batches[batch].push(call["metadata"]["position"].as_u64().unwrap());
    }
    batches
}

proptest! {
    #![proptest_config(ProptestConfig { cases: full_or_short(20, 6), ..ProptestConfig::default() })]

    #[test]
    fn streams_and_documents_are_equivalent(
        calls in call_strategy(),
        cut in prop::bool::weighted(0.3),
        vendor in prop::sample::select(&Vendor::ALL[..]),
    ) {
        let stops = calls.iter().any(|(_, name, _)| *name == "stops_on_failure");
        let cut_off = cut && !stops;
        let mut calls = calls;
        if cut_off && let Some(last) = calls.last_mut() {
            // A call that was sent before has its result in a stream, before the cut is seen.
            last.0 = "last";
        }
        let streamed = vendor.events(&calls, cut_off).concat();
        let document = vendor.document(&calls, cut_off).to_string();
        let plans = [&streamed, &document].map(|text| run_on_input(&["plan", "--format", "json"], text).assert_exit(0).stdout);
        // The document writes numbers in another way, which their inputs keep.
        prop_assert_eq!(parse_json_lines(&plans[0]), parse_json_lines(&plans[1]));
        let outputs = [&streamed, &document].map(|text| run_on_input(&["run"], text).assert_exit(0));
        prop_assert_eq!(&outputs[0].stdout, &outputs[1].stdout);
        // A call that was sent twice is in one batch.
        let sent: HashSet<_> = calls.iter().collect();
        if sent.len() == calls.len() && !cut_off && !stops {
            prop_assert_eq!(started_batches(&outputs[0].log_records()), planned_batches(&plans[0]));
        }
    }
}

/// `--message` writes what goes back with the results: a message with the same calls, none of which is open beside them.
#[test]
fn the_message_of_a_stream_goes_back_with_its_results() {
    let calls = [
        ("a", "look", "{}"),
        ("b", "change", r#"{"text":"\u00e9\"1.50"}"#),
    ];
    for vendor in Vendor::ALL {
        let ran = CliSandbox::new()
            .tools(TOOLS)
            .file("input", vendor.events(&calls, false).concat())
            .run(&["run", "--no-log", "--message", "message.json", "input"])
            .assert_exit(0);
        let message = ran.file("message.json").unwrap();
        assert_eq!(message.lines().count(), 1, "{vendor:?}: {message}");
        let plan = |text: &str| {
            let ran = run_on_input(&["plan", "--format", "json"], text).assert_exit(0);
            parse_json_lines(&ran.stdout)
        };
        let document = vendor.document(&calls, false).to_string();
        assert_eq!(plan(&message), plan(&document), "{vendor:?}: {message}");
        let answered = format!("{message}{}", ran.stdout);
        let again = run_on_input(&["run"], &answered).assert_exit(5);
        assert_eq!(again.stdout, "", "{vendor:?}: {answered}");
    }
}

/// A document has its message already.
#[test]
fn only_a_stream_has_a_message_to_write() {
    let document = Vendor::Chat.document(&[("a", "look", "{}")], false);
    let ran = run_on_input(&["run", "--message", "message.json"], &document.to_string());
    let ran = ran.assert_exit(2);
    assert!(
        ran.stderr.contains("--message is for streams"),
        "{}",
        ran.stderr
    );
    assert_eq!((ran.stdout.as_str(), ran.file("message.json")), ("", None));
}
