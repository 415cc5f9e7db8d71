//! `toolq log cost`.

use serde_json::{Value, json};

use crate::log::log_builder::LogBuilder;
use crate::support::{CliOutput, CliSandbox};

const PRICES: &str = "version: 1
prices:
  big: {input: 3.00, output: 15.00, cache_read: 0.30, cache_write: 3.75}
  small: {input: 1, output: 5}
tools: {}
";

/// Models with their input and output tokens.
type UsageByModel<'a> = &'a [(&'a str, [u64; 2])];

fn add_response(log: &mut LogBuilder, call: u64, model: &str, tokens: [u64; 2]) {
    let metadata = json!({
        "tool_use_id": format!("toolu_{call}"), "tool_name": "new_task", "turn": 0, "model": model,
        "usage": usage_json(tokens),
    });
    log.add_record("model_response", Some(call), &json!({}), &metadata);
}

fn usage_json([input, output]: [u64; 2]) -> Value {
    json!({"input": input, "output": output, "cache_read": 0, "cache_write": 0})
}

/// Adds the result of an agent's call, with its usage by model.
fn add_agent_result(log: &mut LogBuilder, call: u64, agent: &str, ms: u64, used: UsageByModel<'_>) {
    let usage: serde_json::Map<String, Value> = used
        .iter()
        .map(|(model, tokens)| ((*model).to_owned(), usage_json(*tokens)))
        .collect();
    let metadata = json!({
        "tool_use_id": format!("toolu_{call}"), "tool_name": "new_task", "is_error": false, "status": "ok",
        "duration_ms": ms, "attempts": 1, "agent_name": agent, "turns_used": used.len(), "tokens_used": 0,
        "tool_calls_made": 0, "corrections": 0, "usage": usage,
    });
    log.add_record("tool_result", Some(call), &json!("done"), &metadata);
}

fn run_cost(log: &LogBuilder, arguments: &[&str]) -> CliOutput {
    let arguments = [&["log", "cost", "log.jsonl"], arguments].concat();
    CliSandbox::new()
        .tools(PRICES)
        .file("log.jsonl", log.text())
        .run(&arguments)
        .assert_exit(0)
}

/// The responses of a killed run cost money too, in addition to those of the run that resumes it.
#[test]
fn every_response_is_charged() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let call = log.call(turn, "new_task", &json!({}));
    log.start(call, "new_task", 1);
    add_response(&mut log, call, "big", [1_000_000, 0]);
    add_response(&mut log, call, "big", [0, 1_000_000]);
    let killed = run_cost(&log, &["--format", "json"]).json();
    assert_eq!(killed["agents"][0]["agent_name"], "new_task");
    assert_eq!(killed["agents"][0]["turns_used"], 2);
    assert_eq!(killed["agents"][0]["duration_ms"], 0);
    assert_eq!(killed["total"]["estimated_cost_usd"], 18);

    let session = log.session();
    log.start(call, "new_task", 2);
    add_response(&mut log, call, "small", [1_000_000, 1_000_000]);
    add_agent_result(
        &mut log,
        call,
        "expert",
        70,
        &[("small", [1_000_000, 1_000_000])],
    );
    log.session_end(session);
    let resumed = run_cost(&log, &["--format", "json"]).json();
    let agents = resumed["agents"].as_array().unwrap();
    let of = |name: &str| {
        let is_named = |agent: &&Value| agent["agent_name"] == name;
        agents.iter().find(is_named).unwrap()["estimated_cost_usd"].clone()
    };
    assert_eq!((of("new_task"), of("expert")), (json!(18), json!(6)));
    assert_eq!(resumed["total"]["estimated_cost_usd"], 24);
    assert_eq!(resumed["total"]["duration_ms"], 70);
}

#[test]
fn cost_is_a_table_by_default() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let used: [(&str, UsageByModel<'_>); 3] = [
        (
            "coder\u{1b}[31m",
            &[("big-20260101", [12_345, 678]), ("small", [10, 2])],
        ),
        ("reader", &[("small", [1_000_000, 100_000])]),
        ("stranger", &[("unpriced\u{7}", [3, 4])]),
    ];
    for (agent, used) in used {
        let call = log.call(turn, "new_task", &json!({}));
        log.start(call, "new_task", 1);
        add_agent_result(&mut log, call, agent, 1_500, used);
    }
    log.finished_call(turn, "read", "ok", 40);
    log.session_end(session);
    let ran = run_cost(&log, &[]);
    insta::assert_snapshot!(ran.stdout, @r"
    agent          turns    input  output  took  cost
    coder\x1b[31m      2    12355     680  1.5s  $0.047225
    reader             1  1000000  100000  1.5s  $1.50
    stranger           1        3       4  1.5s  unknown
    all                4  1012358  100684  4.5s  unknown
    ");
    // In dollars per million tokens: 12,345 × 3 + 678 × 15 + 10 × 1 + 2 × 5, and 1 + 0.5 dollars.
    assert!(
        ran.stderr.contains("all tokens of unpriced\\x07,"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_log_without_agents_costs_nothing() {
    let mut log = LogBuilder::new();
    let session = log.session();
    log.session_end(session);
    assert_eq!(run_cost(&log, &[]).stdout, "no agents\n");
    let json = run_cost(&log, &["--format", "json"]).json();
    assert_eq!(json["agents"], json!([]));
    assert_eq!(json["total"]["estimated_cost_usd"], 0);
}
