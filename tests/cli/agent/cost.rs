//! What agents cost: from the usage in API responses to `toolq log cost`.

use serde_json::{Value, json};

use crate::agent::expert_fixture::{CANARY, expert_tools};
use crate::support::scripted_api::{
    ScriptedApi, calls_response, message_body, ok_response, text_response,
};
use crate::support::{CliSandbox, model_response};

/// Returns a file in which `expert` can call `helper`, an agent with another model.
fn two_agents(prices: &str) -> String {
    let helper = r#"  helper:
    description: Helps.
    input_schema: {type: object, additionalProperties: false}
    agent: {endpoint: "${BASE}", api_key: "${KEY}", model: small}
"#;
    let file = expert_tools("      tools: [helper, look]") + helper;
    file.replace("version: 1\n", &format!("version: 1\n{prices}"))
}

fn two_agent_api() -> ScriptedApi {
    ScriptedApi::with_script(|_, body| {
        let message_count = body["messages"].as_array().unwrap().len();
        match (body["model"] == "small", message_count) {
            (true, _) => {
                let mut answer = message_body(json!([{"type": "text", "text": "yes"}]), "end_turn");
                answer["model"] = json!("small");
                answer["usage"] = json!({"input_tokens": 1, "output_tokens": 1});
                ok_response(answer)
            }
            (false, 1) => calls_response(&[("helper", json!({}))]),
            _ => text_response("It is so."),
        }
    })
}

/// Runs `expert`, then the shell script. The run's summary goes to the file `summary`.
fn run_then(tools: &str, then_script: &str) -> crate::support::CliOutput {
    let api = two_agent_api();
    CliSandbox::new()
        .tools(tools)
        .env("BASE", &api.url)
        .env("KEY", CANARY)
        .stdin(model_response(&[("expert", json!({"query": "why?"}))]))
        .run_shell(&format!(
            "\"$TOOLQ\" run --log log.jsonl > results 2> summary && {then_script}"
        ))
}

const PRICES: &str = "prices:
  model-1: {input: 3.00, output: 15, cache_read: 0.30, cache_write: 3.75}
  small: {input: 0.1, output: 0.2}
";

#[test]
fn each_agent_has_its_own_cost_and_the_total_is_their_sum() {
    let ran = run_then(
        &two_agents(PRICES),
        "\"$TOOLQ\" log cost --format json log.jsonl",
    )
    .assert_exit(0);
    let mut cost = ran.json();
    for agent in cost["agents"].as_array_mut().unwrap() {
        assert!(agent["duration_ms"].is_u64());
        agent.as_object_mut().unwrap().remove("duration_ms");
    }
    // 2 × (100 × 3 + 10 × 15 + 5 × 0.30 + 1 × 3.75) and 0.1 + 0.2, each / 1,000,000.
    assert_eq!(
        cost["agents"],
        json!([
            {"agent_name": "expert", "input_tokens": 200, "output_tokens": 20, "cache_read_tokens": 10,
             "cache_write_tokens": 2, "estimated_cost_usd": 0.000_910_5, "turns_used": 2},
            {"agent_name": "helper", "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0,
             "cache_write_tokens": 0, "estimated_cost_usd": 0.000_000_3, "turns_used": 1},
        ])
    );
    assert_eq!(cost["total"]["turns_used"], 3);
    assert_eq!(cost["total"]["agent_name"], Value::Null);
    // Not 0.0009108000000000001.
    assert!(
        ran.stdout.contains("\"estimated_cost_usd\":0.0009108,"),
        "{}",
        ran.stdout
    );
    let summary = ran.file("summary").unwrap();
    assert!(
        summary.contains("agents: 3 turns, $0.0009108;"),
        "{summary}"
    );
}

#[test]
fn an_unknown_price_is_null_and_not_0() {
    let prices = "prices: {model-1: {input: 3, output: 15, cache_read: 1, cache_write: 4}}\n";
    let ran = run_then(
        &two_agents(prices),
        "\"$TOOLQ\" log cost --format json log.jsonl",
    )
    .assert_exit(0);
    let cost = ran.json();
    assert_eq!(cost["agents"][0]["estimated_cost_usd"], 0.000_918);
    assert_eq!(cost["agents"][1]["estimated_cost_usd"], Value::Null);
    assert_eq!(cost["total"]["estimated_cost_usd"], Value::Null);
    assert!(
        ran.stderr.contains("doesn't cover all tokens of small,"),
        "{}",
        ran.stderr
    );
    let summary = ran.file("summary").unwrap();
    assert!(summary.contains(", cost unknown;"), "{summary}");
}

/// Without declared prices the summary doesn't mention costs.
#[test]
fn without_prices_only_tokens_are_reported() {
    let ran = run_then(
        &two_agents(""),
        "mv tools.yaml away && \"$TOOLQ\" log cost --format json log.jsonl && \"$TOOLQ\" log cost -c gone.yaml log.jsonl",
    )
    .assert_exit(2);
    let cost: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    assert_eq!(cost["total"]["input_tokens"], 201);
    assert_eq!(cost["total"]["estimated_cost_usd"], Value::Null);
    assert!(ran.stderr.contains("gone.yaml"), "{}", ran.stderr);
    let summary = ran.file("summary").unwrap();
    assert!(summary.contains("agents: 3 turns;"), "{summary}");
}
