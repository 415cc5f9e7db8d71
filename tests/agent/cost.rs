//! What agents cost: from what a model says to `toolq log cost`.

use serde_json::{Value, json};

use crate::api::{Api, calls, message, ok, text};
use crate::scenes::{CANARY, tools};
use crate::support::{Toolq, response};

/// `expert` asks `helper`, whose model is another.
fn two_agents(prices: &str) -> String {
    let helper = r#"  helper:
    description: Helps.
    input_schema: {type: object, additionalProperties: false}
    agent: {endpoint: "${BASE}", api_key: "${KEY}", model: small}
"#;
    let file = tools("      tools: [helper, look]") + helper;
    file.replace("version: 1\n", &format!("version: 1\n{prices}"))
}

fn script() -> Api {
    Api::by(|_, body| {
        let spoken = body["messages"].as_array().unwrap().len();
        match (body["model"] == "small", spoken) {
            (true, _) => {
                let mut answer = message(json!([{"type": "text", "text": "yes"}]), "end_turn");
                answer["model"] = json!("small");
                answer["usage"] = json!({"input_tokens": 1, "output_tokens": 1});
                ok(answer)
            }
            (false, 1) => calls(&[("helper", json!({}))]),
            _ => text("It is so."),
        }
    })
}

/// Runs `expert`, then `script`; the summary of the run is in the file `told`.
fn after(tools: &str, script_of_shell: &str) -> crate::support::Ran {
    let api = script();
    Toolq::new()
        .tools(tools)
        .env("BASE", &api.url)
        .env("KEY", CANARY)
        .stdin(response(&[("expert", json!({"query": "why?"}))]))
        .shell(&format!(
            "\"$TOOLQ\" run --log log.jsonl > results 2> told && {script_of_shell}"
        ))
}

const PRICES: &str = "prices:
  model-1: {input: 3.00, output: 15, cache_read: 0.30, cache_write: 3.75}
  small: {input: 0.1, output: 0.2}
";

#[test]
fn each_agent_has_its_own_and_the_total_is_their_sum() {
    let ran = after(
        &two_agents(PRICES),
        "\"$TOOLQ\" log cost --format json log.jsonl",
    )
    .exits(0);
    let mut cost = ran.json();
    for agent in cost["agents"].as_array_mut().unwrap() {
        assert!(agent["duration_ms"].is_u64());
        agent.as_object_mut().unwrap().remove("duration_ms");
    }
    // 2 × (100 × 3 + 10 × 15 + 5 × 0.30 + 1 × 3.75) and 0.1 + 0.2, for a million.
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
    let told = ran.file("told").unwrap();
    assert!(
        told.contains("agents: 3 turns, 1 call, $0.0009108;"),
        "{told}"
    );
}

#[test]
fn an_unknown_price_is_none_and_not_0() {
    let prices = "prices: {model-1: {input: 3, output: 15, cache_read: 1, cache_write: 4}}\n";
    let ran = after(
        &two_agents(prices),
        "\"$TOOLQ\" log cost --format json log.jsonl",
    )
    .exits(0);
    let cost = ran.json();
    assert_eq!(cost["agents"][0]["estimated_cost_usd"], 0.000_918);
    assert_eq!(cost["agents"][1]["estimated_cost_usd"], Value::Null);
    assert_eq!(cost["total"]["estimated_cost_usd"], Value::Null);
    assert!(
        ran.stderr.contains("has nothing of small,"),
        "{}",
        ran.stderr
    );
    let told = ran.file("told").unwrap();
    assert!(told.contains(", cost unknown;"), "{told}");
}

/// A summary says nothing of costs to who declares no prices.
#[test]
fn without_prices_there_are_tokens() {
    let ran = after(
        &two_agents(""),
        "mv tools.yaml away && \"$TOOLQ\" log cost --format json log.jsonl && \"$TOOLQ\" log cost -c gone.yaml log.jsonl",
    )
    .exits(2);
    let cost: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    assert_eq!(cost["total"]["input_tokens"], 201);
    assert_eq!(cost["total"]["estimated_cost_usd"], Value::Null);
    assert!(ran.stderr.contains("gone.yaml"), "{}", ran.stderr);
    let told = ran.file("told").unwrap();
    assert!(told.contains("agents: 3 turns, 1 call;"), "{told}");
}
