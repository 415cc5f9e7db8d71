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
    prop::collection::vec((ids, names, inputs), 1..8).prop_map(|mut calls| {
        // A rejected call gets its result as soon as the next call arrives, and so do all calls after a failed one that
        // stops the turn. A duplicate ID that arrives later can't revoke that result, unlike in a document.
        let stops = calls.iter().any(|(_, name, _)| *name == "stops_on_failure");
        let unique_ids = ["i", "j", "k", "l", "m", "n", "o"];
        for (unique_id, (id, name, input)) in unique_ids.into_iter().zip(&mut calls) {
            let surplus = matches!(*name, "look" | "stops_on_failure") && *input != "{}";
            if stops || surplus || *name == "unknown" || *input == "[1]" {
                *id = unique_id;
            }
        }
        calls
    })
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
        let streamed = vendor.events(&calls, cut_off).concat();
        let document = vendor.document(&calls, cut_off).to_string();
        let plans = [&streamed, &document].map(|text| run_on_input(&["plan", "--format", "json"], text).assert_exit(0).stdout);
        // The document writes numbers in another way, which their inputs keep.
        prop_assert_eq!(parse_json_lines(&plans[0]), parse_json_lines(&plans[1]));
        let outputs = [&streamed, &document].map(|text| run_on_input(&["run"], text).assert_exit(0));
        prop_assert_eq!(&outputs[0].stdout, &outputs[1].stdout);
        // A call that is revoked was already assigned to a batch.
        let ids: HashSet<&str> = calls.iter().map(|(id, ..)| *id).collect();
        let all_run = ids.len() == calls.len() && !cut_off && !stops;
        if all_run {
            prop_assert_eq!(started_batches(&outputs[0].log_records()), planned_batches(&plans[0]));
        }
    }
}
