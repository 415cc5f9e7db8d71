//! An agent whose API refuses every connection: it had no turn, and nothing is known of its cost.

use std::net::TcpListener;

use serde_json::Value;

use crate::agent::expert_fixture::{CANARY, expert_tools};
use crate::support::{CliOutput, CliSandbox, model_response, parse_json_lines};

const PRICES: &str = "prices: {model-1: {input: 3, output: 15, cache_read: 1, cache_write: 4}}\n";
const WORDING: &str = "messages: {agent_failed: 'Sorry: {error}', unavailable: 'not this one'}\n";

/// Runs a script with an agent whose endpoint has no listener.
fn run_unreachable(script: &str) -> CliOutput {
    let free_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let file = expert_tools("      max_turns: 3\n    retry: {times: 0}");
    let header = format!("version: 1\n{PRICES}{WORDING}");
    CliSandbox::new()
        .tools(&file.replace("version: 1\n", &header))
        .file(
            "call.json",
            model_response(&[("expert", serde_json::json!({"query": "why?"}))]),
        )
        .env("BASE", &format!("http://{}", free_port.unwrap()))
        .env("KEY", CANARY)
        .run_shell(script)
}

#[test]
fn a_refused_connection_is_a_failure_of_the_agent() {
    let ran = run_unreachable("\"$TOOLQ\" run -q --log l.jsonl call.json").assert_exit(0);
    let (text, is_error) = ran.result_texts().remove(0);
    assert!(is_error && text.starts_with("Sorry: "), "{text}");
    let log = parse_json_lines(&ran.file("l.jsonl").unwrap());
    let result = log.iter().find(|record| record["type"] == "tool_result");
    let metadata = &result.unwrap()["metadata"];
    assert_eq!(metadata["status"], "agent_failed");
    let cause = metadata["error"]["message"].as_str().unwrap();
    assert!(cause.starts_with("http://127.0.0.1"), "{cause}");
    assert!(cause.to_lowercase().contains("refused"), "{cause}");
}

#[test]
fn an_agent_without_a_response_had_no_turn_and_no_cost() {
    let script = "\"$TOOLQ\" run --log l.jsonl call.json > results; \"$TOOLQ\" log cost l.jsonl; \
                  \"$TOOLQ\" log cost --format json l.jsonl";
    let ran = run_unreachable(script).assert_exit(0);
    let summary = "agents: 0 turns;";
    assert!(ran.stderr.contains(summary), "{}", ran.stderr);
    assert!(!ran.stderr.contains('$'), "{}", ran.stderr);
    let (table, json) = ran.stdout.split_at(ran.stdout.find('{').unwrap());
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with("expert") && row.ends_with('–'), "{table}");
    let cost: Value = serde_json::from_str(json).unwrap();
    assert_eq!(cost["agents"][0]["turns_used"], 0);
    assert_eq!(cost["agents"][0]["estimated_cost_usd"], Value::Null);
}

#[test]
fn a_called_agent_reports_an_unknown_cost_without_a_response() {
    let script = "echo '{\"query\": \"why?\"}' | \"$TOOLQ\" call expert --to json";
    let report = run_unreachable(script).assert_exit(1).json();
    assert_eq!(report["turns_used"], 0);
    assert_eq!(report["estimated_cost_usd"], Value::Null);
}
