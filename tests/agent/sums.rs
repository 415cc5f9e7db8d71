//! What a run cost, counted by everybody who counts: they agree to the last digit. Amounts are whole numbers of
//! millionths of a millionth of a dollar here, read from the digits that are printed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::coordinator::run_of_all;
use crate::support::json_lines;

/// Of the fixture: millionths of a dollar for a million tokens.
const PRICES: [(&str, [u64; 4]); 2] = [
    (
        "claude-sonnet-4-5",
        [3_000_000, 15_000_000, 300_000, 3_750_000],
    ),
    (
        "claude-haiku-4-5",
        [1_000_000, 5_000_000, 100_000, 1_250_000],
    ),
];
const KINDS: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

/// What `usage` of `model` costs.
fn cost(model: &str, usage: &Value) -> u64 {
    let (_, prices) = PRICES
        .iter()
        .find(|(name, _)| model.starts_with(name))
        .unwrap();
    let tokens = KINDS.map(|kind| usage[kind].as_u64().unwrap());
    tokens
        .iter()
        .zip(prices)
        .map(|(tokens, price)| tokens * price)
        .sum()
}

/// The amount behind `before`, up to what is no digit.
fn amount(text: &str, before: &str) -> u64 {
    let (_, behind) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before} in {text}"));
    let end = behind
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(behind.len());
    let (whole, rest) = behind[..end]
        .split_once('.')
        .unwrap_or((&behind[..end], ""));
    let rest = rest.trim_end_matches('0');
    assert!(rest.len() <= 12, "{behind}");
    whole.parse::<u64>().unwrap() * 1_000_000_000_000
        + format!("{rest:0<12}").parse::<u64>().unwrap()
}

/// Every kind of token at its own price, each answer once, whoever adds up.
#[test]
fn all_who_count_agree() {
    let ran = run_of_all();
    let log = json_lines(&ran.file("log.jsonl").unwrap());
    let mut by_agent: BTreeMap<&str, u64> = BTreeMap::new();
    let responses = log
        .iter()
        .filter(|record| record["type"] == "model_response");
    for response in responses {
        let metadata = &response["metadata"];
        // As the API said it.
        let said = &response["content"]["usage"];
        let tokens = [
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ];
        for (kind, key) in KINDS.iter().zip(tokens) {
            assert_eq!(metadata["usage"][kind], said[key]);
            assert!(said[key].as_u64() > Some(0));
        }
        let model = metadata["model"].as_str().unwrap();
        *by_agent
            .entry(metadata["tool_name"].as_str().unwrap())
            .or_default() += cost(model, &metadata["usage"]);
    }
    let total: u64 = by_agent.values().sum();
    assert_eq!(by_agent.len(), 4);
    assert_eq!(amount(&ran.stderr, ", $"), total, "{}", ran.stderr);

    let results = log
        .iter()
        .filter(|record| record["metadata"]["agent_name"].is_string());
    let costs = ran.file("cost.json").unwrap();
    let (agents, all) = costs.split_once("\"total\":").unwrap();
    let mut seen = 0;
    for result in results {
        let metadata = &result["metadata"];
        let name = metadata["agent_name"].as_str().unwrap();
        let used = metadata["usage"].as_object().unwrap();
        let expected = by_agent.get(name).copied().unwrap_or_default();
        assert_eq!(
            used.iter()
                .map(|(model, usage)| cost(model, usage))
                .sum::<u64>(),
            expected
        );
        let (_, of_agent) = agents.split_once(&format!("\"{name}\"")).unwrap();
        assert_eq!(
            amount(of_agent, "\"estimated_cost_usd\":"),
            expected,
            "{name}"
        );
        seen += 1;
    }
    assert_eq!(seen, 5);
    assert_eq!(amount(all, "\"estimated_cost_usd\":"), total);
}
