//! Usage that the API doesn't report.

use serde_json::{Value, json};

use crate::agent::expert_fixture::{expert_tools, run_expert, run_expert_in, single_result, toolq};
use crate::support::parse_json_lines;
use crate::support::scripted_api::{
    ApiBehavior, ScriptedApi, calls_response, ok_response, text_response,
};

const INPUT: &str = r#"{"query": "why?"}"#;
const PRICES: &str =
    "version: 1\nprices: {model-1: {input: 3, output: 15, cache_read: 1, cache_write: 4}}\n";

/// Removes the usage from a response.
fn without_usage(response: ApiBehavior) -> ApiBehavior {
    let ApiBehavior::Respond(200, _, body) = response else {
        panic!("the response isn't a success");
    };
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body.as_object_mut().unwrap().remove("usage");
    ok_response(body)
}

/// Unknown usage is null, never 0.
#[test]
fn usage_that_the_api_omits_is_unknown() {
    let look = calls_response(&[("look", json!({"at": "home"}))]);
    let api = ScriptedApi::new(&[look, without_usage(text_response("It is so."))]);
    let file = expert_tools("      tools: [look]").replace("version: 1\n", PRICES);
    let ran = toolq(&api, "")
        .tools(&file)
        .stdin(INPUT)
        .run_shell("\"$TOOLQ\" call expert --to json --log l.jsonl > report && \"$TOOLQ\" log cost l.jsonl && \"$TOOLQ\" log cost --format json l.jsonl > cost")
        .assert_exit(0);
    let report: Value = serde_json::from_str(&ran.file("report").unwrap()).unwrap();
    for key in ["tokens_used", "estimated_cost_usd"] {
        assert_eq!(report[key], Value::Null, "{report}");
    }
    assert_eq!(report["usage"], json!({"model-1-20260101": null}));
    assert_eq!(ran.stdout.matches("unknown").count(), 3, "{}", ran.stdout);
    let expected = "the API didn't report the tokens of some responses of model-1-20260101";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert!(!ran.stderr.contains("doesn't cover"), "{}", ran.stderr);
    let cost: Value = serde_json::from_str(&ran.file("cost").unwrap()).unwrap();
    assert_eq!(cost["total"]["input_tokens"], Value::Null);
    assert_eq!(cost["total"]["estimated_cost_usd"], Value::Null);
    let log = parse_json_lines(&ran.file("l.jsonl").unwrap());
    let usage = |kind: &str| log.iter().rfind(|record| record["type"] == kind).unwrap();
    assert_eq!(usage("model_response")["metadata"]["usage"], Value::Null);
    assert_eq!(usage("tool_result")["metadata"]["tokens_used"], Value::Null);
}

/// The summary of `toolq run` says that the cost is unknown.
#[test]
fn the_summary_shows_omitted_usage_as_unknown() {
    let api = ScriptedApi::new(&[without_usage(text_response("It is so."))]);
    let file = expert_tools("").replace("version: 1\n", PRICES);
    let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
    assert!(ran.stderr.contains(", cost unknown;"), "{}", ran.stderr);
}

/// Missing usage doesn't count as 0 against a budget: the agent ends, unless it already has its answer.
#[test]
fn an_uncountable_budget_ends_its_agent() {
    for budget in ["{tokens: 100000}", "{usd: 9}"] {
        let keys = format!("      tools: [look]\n      max_turns: 9\n      budget: {budget}");
        let file = expert_tools(&keys).replace("version: 1\n", PRICES);
        let looks = without_usage(calls_response(&[("look", json!({"at": "x"}))]));
        let api = ScriptedApi::new(&[looks]);
        let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(3);
        let (result_text, is_error) = single_result(&ran);
        let expected = "how much of expert's budget";
        assert!(is_error && result_text.contains(expected), "{result_text}");
        assert!(
            result_text.contains("reported no usage for model-1-20260101"),
            "{result_text}"
        );
        assert_eq!(api.requests().len(), 1);
        let api = ScriptedApi::new(&[without_usage(text_response("It is so."))]);
        let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
        assert_eq!(single_result(&ran).0, "It is so.");
    }
    let looks = without_usage(calls_response(&[("look", json!({"at": "x"}))]));
    let api = ScriptedApi::new(&[looks, text_response("It is so.")]);
    let keys = "      tools: [look]\n      budget: {turns: 2}";
    assert_eq!(
        single_result(&run_expert(&api, keys).assert_exit(0)).0,
        "It is so."
    );
}
