//! Tokens that an API did not tell, and those of answers that broke off.

use serde_json::{Value, json};

use crate::api::{Act, Api, calls, ok, text};
use crate::scenes::{CANARY, ask, asked, result, toolq, tools};
use crate::speech::{said, say};
use crate::support::json_lines;
use crate::vendors::event;

const INPUT: &str = r#"{"query": "why?"}"#;
const PRICES: &str =
    "version: 1\nprices: {model-1: {input: 3, output: 15, cache_read: 1, cache_write: 4}}\n";

/// The same answer, of an API that counts nothing.
fn uncounted(answer: Act) -> Act {
    let Act::Say(200, _, body) = answer else {
        panic!("it says something");
    };
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body.as_object_mut().unwrap().remove("usage");
    ok(body)
}

/// FAULTS 103: what is not known is null, and never 0.
#[test]
fn tokens_that_nobody_told_are_unknown() {
    let look = calls(&[("look", json!({"at": "home"}))]);
    let api = Api::new(&[look, uncounted(text("It is so."))]);
    let file = tools("      tools: [look]").replace("version: 1\n", PRICES);
    let ran = toolq(&api, "")
        .tools(&file)
        .stdin(INPUT)
        .shell("\"$TOOLQ\" agent expert --to json --log l.jsonl > report && \"$TOOLQ\" log cost l.jsonl && \"$TOOLQ\" log cost --format json l.jsonl > cost")
        .exits(0);
    let report: Value = serde_json::from_str(&ran.file("report").unwrap()).unwrap();
    for key in ["tokens_used", "estimated_cost_usd"] {
        assert_eq!(report[key], Value::Null, "{report}");
    }
    assert_eq!(report["usage"], json!({"model-1-20260101": null}));
    assert_eq!(ran.stdout.matches("unknown").count(), 3, "{}", ran.stdout);
    let words = "the API of model-1-20260101 did not say how many tokens";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert!(!ran.stderr.contains("has nothing of"), "{}", ran.stderr);
    let cost: Value = serde_json::from_str(&ran.file("cost").unwrap()).unwrap();
    assert_eq!(cost["total"]["input_tokens"], Value::Null);
    assert_eq!(cost["total"]["estimated_cost_usd"], Value::Null);
    let log = json_lines(&ran.file("l.jsonl").unwrap());
    let usage = |kind: &str| log.iter().rfind(|record| record["type"] == kind).unwrap();
    assert_eq!(usage("model_response")["metadata"]["usage"], Value::Null);
    assert_eq!(usage("tool_result")["metadata"]["tokens_used"], Value::Null);
}

/// A run without a budget tells it in its summary.
#[test]
fn a_summary_does_not_count_what_nobody_told() {
    let api = Api::new(&[uncounted(text("It is so."))]);
    let file = tools("").replace("version: 1\n", PRICES);
    let ran = asked(toolq(&api, "").tools(&file)).exits(0);
    assert!(ran.stderr.contains(", cost unknown;"), "{}", ran.stderr);
}

/// FAULTS 103: a budget that can't be counted is not held by counting nothing. An answer that is there is given.
#[test]
fn a_budget_that_can_not_be_counted_ends_its_agent() {
    for budget in ["{tokens: 100000}", "{usd: 9}"] {
        let keys = format!("      tools: [look]\n      max_turns: 9\n      budget: {budget}");
        let file = tools(&keys).replace("version: 1\n", PRICES);
        let looks = uncounted(calls(&[("look", json!({"at": "x"}))]));
        let api = Api::new(&[looks]);
        let ran = asked(toolq(&api, "").tools(&file)).exits(3);
        let (told, is_error) = result(&ran);
        let why = "nobody knows what is left of the budget of expert";
        assert!(is_error && told.contains(why), "{told}");
        assert!(told.contains("told no usage of model-1-20260101"), "{told}");
        assert_eq!(api.heard().len(), 1);
        let api = Api::new(&[uncounted(text("It is so."))]);
        let ran = asked(toolq(&api, "").tools(&file)).exits(0);
        assert_eq!(result(&ran).0, "It is so.");
    }
    let looks = uncounted(calls(&[("look", json!({"at": "x"}))]));
    let api = Api::new(&[looks, text("It is so.")]);
    let keys = "      tools: [look]\n      budget: {turns: 2}";
    assert_eq!(result(&ask(&api, keys).exits(0)).0, "It is so.");
}

/// What was told of an answer that broke off is paid for, whether it was asked for again or not.
#[test]
fn what_an_answer_took_that_broke_off_counts() {
    let usage = json!({"input_tokens": 100, "output_tokens": 1});
    let started = json!({"type": "message_start", "message": {"model": CANARY, "usage": usage}});
    let broken = || Act::Speak(vec![say(event(&started) + &said(0, "So"))]);
    let (first, whole) = (101, 116);
    for (acts, tokens, status) in [
        (vec![broken(), text("It is so.")], first + whole, "ok"),
        (vec![broken()], 2 * first, "unavailable"),
    ] {
        let api = Api::new(&acts);
        let keys = "      stream: true\n    retry: {times: 1, backoff: 1ms, on: [unavailable]}";
        let ran = toolq(&api, keys)
            .stdin(INPUT)
            .shell("\"$TOOLQ\" agent expert --to json --log l.jsonl; \"$TOOLQ\" log cost --format json l.jsonl > cost")
            .exits(0);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["status"], status, "{report}");
        assert_eq!(report["tokens_used"], tokens, "{report}");
        // An API may call its model what it likes.
        let log = ran.file("l.jsonl").unwrap();
        assert!(log.contains(r#""lost":{"[masked]":"#), "{log}");
        assert!(!format!("{log}{}", ran.stdout).contains(CANARY));
        let cost: Value = serde_json::from_str(&ran.file("cost").unwrap()).unwrap();
        let kinds = [
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
        ];
        let counts = kinds.map(|kind| cost["total"][kind].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), tokens, "{cost}");
    }
}
