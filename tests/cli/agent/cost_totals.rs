//! Summary, session log and `log cost` agree on what a run cost, to the last digit. This file counts in picodollars (10⁻¹²
//! dollars), parsed from the printed digits, so that no rounding can hide a difference.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::agent::coordinator::run_mixed_calls;
use crate::support::parse_json_lines;

/// The prices of the fixture for input, output, cache read and cache write, in picodollars per token.
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
const TOKEN_KINDS: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

/// Returns the cost of `usage` in picodollars.
fn usage_cost(model: &str, usage: &Value) -> u64 {
    let (_, prices) = PRICES
        .iter()
        .find(|(name, _)| model.starts_with(name))
        .unwrap();
    let tokens = TOKEN_KINDS.map(|kind| usage[kind].as_u64().unwrap());
    tokens
        .iter()
        .zip(prices)
        .map(|(tokens, price)| tokens * price)
        .sum()
}

/// Parses the dollar amount that follows `before`, and returns it in picodollars.
fn parse_amount_after(text: &str, before: &str) -> u64 {
    let (_, after) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before} in {text}"));
    let end = after
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(after.len());
    let (whole, rest) = after[..end].split_once('.').unwrap_or((&after[..end], ""));
    let rest = rest.trim_end_matches('0');
    assert!(rest.len() <= 12, "{after}");
    whole.parse::<u64>().unwrap() * 1_000_000_000_000
        + format!("{rest:0<12}").parse::<u64>().unwrap()
}

/// Every kind of token is charged at its own price and every response once, in all three places.
#[test]
fn summary_log_and_cost_report_agree() {
    let ran = run_mixed_calls();
    let log = parse_json_lines(&ran.file("log.jsonl").unwrap());
    let mut by_agent: BTreeMap<&str, u64> = BTreeMap::new();
    let responses = log
        .iter()
        .filter(|record| record["type"] == "model_response");
    for response in responses {
        let metadata = &response["metadata"];
        // The usage in the log is that of the API.
        let api_usage = &response["content"]["usage"];
        let tokens = [
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ];
        for (kind, key) in TOKEN_KINDS.iter().zip(tokens) {
            assert_eq!(metadata["usage"][kind], api_usage[key]);
            assert!(api_usage[key].as_u64() > Some(0));
        }
        let model = metadata["model"].as_str().unwrap();
        *by_agent
            .entry(metadata["tool_name"].as_str().unwrap())
            .or_default() += usage_cost(model, &metadata["usage"]);
    }
    let total: u64 = by_agent.values().sum();
    assert_eq!(by_agent.len(), 4);
    assert_eq!(
        parse_amount_after(&ran.stderr, ", $"),
        total,
        "{}",
        ran.stderr
    );

    let results = log
        .iter()
        .filter(|record| record["metadata"]["agent_name"].is_string());
    let costs = ran.file("cost.json").unwrap();
    let (agents, all) = costs.split_once("\"total\":").unwrap();
    let mut agent_count = 0;
    for result in results {
        let metadata = &result["metadata"];
        let name = metadata["agent_name"].as_str().unwrap();
        let used = metadata["usage"].as_object().unwrap();
        let expected = by_agent.get(name).copied().unwrap_or_default();
        assert_eq!(
            used.iter()
                .map(|(model, usage)| usage_cost(model, usage))
                .sum::<u64>(),
            expected
        );
        let (_, of_agent) = agents.split_once(&format!("\"{name}\"")).unwrap();
        // Nothing is known of the cost of an agent whose model never responded.
        if used.is_empty() {
            assert!(of_agent.contains("\"estimated_cost_usd\":null"), "{name}");
        } else {
            let cost = parse_amount_after(of_agent, "\"estimated_cost_usd\":");
            assert_eq!(cost, expected, "{name}");
        }
        agent_count += 1;
    }
    assert_eq!(agent_count, 5);
    assert_eq!(parse_amount_after(all, "\"estimated_cost_usd\":"), total);
}
