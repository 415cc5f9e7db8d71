//! A stream and the document that it adds up to are planned and answered alike.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::Value;

use super::support::{Toolq, json_lines};
use super::vendors::{Asked, Vendor};

const TOOLS: &str = r#"
version: 1
concurrency: 4
tools:
  look: {description: d, input_schema: {type: object, additionalProperties: false}, effect: read, command: [echo, look]}
  alone: {description: d, input_schema: {type: object}, effect: read, concurrency_safe: false, command: [echo, alone]}
  change: {description: d, input_schema: {type: object}, command: [echo, change]}
  fails: {description: d, input_schema: {type: object}, effect: read, command: ["false"]}
  ends: {description: d, input_schema: {type: object, additionalProperties: false}, effect: idempotent, on_failure: stop, command: [echo, ends]}
"#;

fn asked() -> impl Strategy<Value = Vec<Asked<'static>>> {
    let ids = prop::sample::select(&["a", "b", "c", "d", "e", "f", "g", "h"][..]);
    let names = prop::sample::select(
        &[
            "look", "look", "alone", "change", "fails", "ends", "unknown",
        ][..],
    );
    let inputs = prop::sample::select(&["{}", "{}", "{}", r#"{"surplus":1.50}"#, "[1]"][..]);
    prop::collection::vec((ids, names, inputs), 1..8).prop_map(|mut calls| {
        // What may not run is answered when the next call comes, and so is all behind a failed one that stops the turn. A
        // second id after that is too late for it.
        let stops = calls.iter().any(|(_, name, _)| *name == "ends");
        let own = ["i", "j", "k", "l", "m", "n", "o"];
        for (own, (id, name, input)) in own.into_iter().zip(&mut calls) {
            let surplus = matches!(*name, "look" | "ends") && *input != "{}";
            if stops || surplus || *name == "unknown" || *input == "[1]" {
                *id = own;
            }
        }
        calls
    })
}

/// A run of `text`, read where it lies.
fn run(arguments: &[&str], text: &str) -> super::support::Ran {
    let arguments = [arguments, &["input"]].concat();
    Toolq::new()
        .tools(TOOLS)
        .file("input", text)
        .run(&arguments)
}

/// The batches of a plan, by position.
fn planned(plan: &str) -> Vec<Vec<u64>> {
    let plan = &json_lines(plan)[0];
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

/// The batches that ran, by position.
fn ran(log: &[Value]) -> Vec<Vec<u64>> {
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
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn streamed_and_whole_are_alike(
        calls in asked(),
        cut in prop::bool::weighted(0.3),
        vendor in prop::sample::select(&Vendor::ALL[..]),
    ) {
        let stops = calls.iter().any(|(_, name, _)| *name == "ends");
        let cut_off = cut && !stops;
        let streamed = vendor.events(&calls, cut_off).concat();
        let whole = vendor.document(&calls, cut_off).to_string();
        let plans = [&streamed, &whole].map(|text| run(&["plan", "--format", "json"], text).exits(0).stdout);
        prop_assert_eq!(&plans[0], &plans[1]);
        let answers = [&streamed, &whole].map(|text| run(&["run"], text).exits(0));
        prop_assert_eq!(&answers[0].stdout, &answers[1].stdout);
        // A call that is revoked had its batch already.
        let ids: HashSet<&str> = calls.iter().map(|(id, ..)| *id).collect();
        let all_run = ids.len() == calls.len() && !cut_off && !stops;
        if all_run {
            prop_assert_eq!(ran(&answers[0].log()), planned(&plans[0]));
        }
    }
}
