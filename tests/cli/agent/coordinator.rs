//! The coordinator fixture: an agent whose tools are experts, which are agents themselves.

use serde_json::{Value, json};

use crate::agent::event_timeline::{CallTimeline, RunTimeline};
use crate::support::scripted_api::{
    ApiBehavior, ScriptedApi, calls_response, error_response, text_response,
};
use crate::support::{CliOutput, CliSandbox, model_response, parse_json_lines};

const TOOLS_FILE: &str = "fixtures/coordinator/tools.yaml";
const EXPERTS: [&str; 5] = [
    "invoke_policy_expert",
    "invoke_assessment_expert",
    "invoke_strategist",
    "invoke_objection_handler",
    "invoke_case_analyst",
];

fn all_experts() -> Vec<(&'static str, Value)> {
    let call = |name: &'static str| (name, json!({"query": format!("{name}?")}));
    EXPERTS.map(call).to_vec()
}

/// Returns an expert's response: first a lookup, then the answer. The first requests of all five experts wait for each
/// other.
fn expert_response(body: &Value) -> ApiBehavior {
    let messages = body["messages"].as_array().unwrap();
    match messages.len() {
        1 => {
            let look = calls_response(&[("search_knowledge", json!({"query": "年金"}))]);
            ApiBehavior::Rendezvous(5, Box::new(look))
        }
        _ => text_response(&format!(
            "意见:{}",
            messages[0]["content"].as_str().unwrap()
        )),
    }
}

/// Makes a response name the requested model instead of the default one.
fn with_requested_model(behavior: ApiBehavior, body: &Value) -> ApiBehavior {
    let model = format!("{}-20260101", body["model"].as_str().unwrap());
    match behavior {
        ApiBehavior::Respond(status, headers, body) => {
            ApiBehavior::Respond(status, headers, body.replace("model-1-20260101", &model))
        }
        ApiBehavior::Rendezvous(count, then) => {
            ApiBehavior::Rendezvous(count, Box::new(with_requested_model(*then, body)))
        }
        other => other,
    }
}

fn toolq(api: &ScriptedApi) -> CliSandbox {
    CliSandbox::in_repository()
        .env("ANTHROPIC_BASE_URL", &api.url)
        .env("ANTHROPIC_API_KEY", crate::agent::expert_fixture::CANARY)
}

#[test]
fn five_experts_work_at_the_same_time() {
    let api = ScriptedApi::with_script(|_, body| expert_response(body));
    let ran = toolq(&api)
        .stdin(model_response(&all_experts()))
        .run(&["run", "-c", TOOLS_FILE])
        .assert_exit(0);
    let expected = EXPERTS.map(|name| (format!("意见:{name}?"), false));
    assert_eq!(ran.result_texts(), expected);
    assert_eq!(api.requests().len(), 10);
    // The log has the calls that the experts made.
    let log = ran.log_records();
    let lookups = log.iter().filter(|record| {
        record["type"] == "tool_result" && record["metadata"]["tool_name"] == "search_knowledge"
    });
    assert_eq!(lookups.count(), 5);
}

#[test]
fn the_coordinator_itself_is_an_agent() {
    let api = ScriptedApi::with_script(|_, body| {
        let messages = body["messages"].as_array().unwrap();
        let is_coordinator = body["tools"].as_array().unwrap().len() == 14;
        let behavior = match (is_coordinator, messages.len()) {
            (false, _) => expert_response(body),
            (true, 1) => calls_response(&all_experts()),
            (true, 3) => calls_response(&[
                (
                    "save_user_memory",
                    json!({"key": "preference", "value": "年金险"}),
                ),
                (
                    "generate_payment",
                    json!({"plan": "A", "amount": "100.00", "currency": "CNY"}),
                ),
            ]),
            _ => text_response("方案已备好。"),
        };
        with_requested_model(behavior, body)
    });
    let ran = toolq(&api)
        .stdin(r#"{"request": "请给我一个养老方案"}"#)
        .run_shell(&format!(
            r#""$TOOLQ" call coordinator -c {TOOLS_FILE} --to json --events "$HOME/events.ndjson""#
        ))
        .assert_exit(0);
    let report = ran.json();
    assert_eq!(report["text"], "方案已备好。");
    assert_eq!(report["turns_used"], 3);
    assert_eq!(report["tool_calls_made"], 7);
    assert_eq!(report["usage"]["claude-sonnet-4-5-20260101"]["input"], 900);
    assert_eq!(report["usage"]["claude-haiku-4-5-20260101"]["input"], 400);
    // Nine responses at $0.00045525 and four at $0.00015175.
    assert_eq!(report["estimated_cost_usd"], 0.004_704_25);
    let log = ran.log_records();
    let result_count = |name: &str| {
        let results = log
            .iter()
            .filter(|record| record["metadata"]["agent_name"] == name);
        results.count()
    };
    assert_eq!(EXPERTS.map(result_count), [1; 5]);
    assert_eq!(result_count("coordinator"), 1);
    let timeline =
        RunTimeline::from_agent_events(&parse_json_lines(&ran.file("events.ndjson").unwrap()));
    // The coordinator, its seven calls, and one call by each expert.
    assert_eq!(timeline.calls.len(), 13);
    for (at, name) in EXPERTS.iter().enumerate() {
        let of_coordinator = Some("toolq_coordinator".to_owned());
        assert_eq!(
            &timeline.calls[&(of_coordinator, 0, format!("a{at}"))].name,
            name
        );
        let lookup = &timeline.calls[&(Some(format!("a{at}")), 0, "a0".to_owned())];
        assert_eq!((&*lookup.name, &*lookup.status), ("search_knowledge", "ok"));
    }
}

/// Gives each response a different number of tokens of every kind, so that mixing them up changes the sums.
fn with_distinct_usage(behavior: ApiBehavior, number: u64) -> ApiBehavior {
    match behavior {
        ApiBehavior::Respond(status, headers, body) => {
            let mut body: Value = serde_json::from_str(&body).unwrap();
            if body["usage"].is_object() {
                body["usage"] = json!({
                    "input_tokens": 1_001 + 7 * number, "output_tokens": 101 + 3 * number,
                    "cache_read_input_tokens": 5_003 + 11 * number, "cache_creation_input_tokens": 307 + 13 * number,
                });
            }
            ApiBehavior::Respond(status, headers, body.to_string())
        }
        ApiBehavior::Rendezvous(count, then) => {
            ApiBehavior::Rendezvous(count, Box::new(with_distinct_usage(*then, number)))
        }
        other => other,
    }
}

/// The API of [`run_mixed_calls`]: the strategist's request fails; every other expert makes a lookup and a call of an
/// unknown tool, and the policy expert then makes another call.
fn expert_api() -> ScriptedApi {
    ScriptedApi::with_script(|number, body| {
        let messages = body["messages"].as_array().unwrap();
        let query = messages[0]["content"].as_str().unwrap();
        let behavior = match messages.len() {
            _ if query.contains("strategist") => {
                error_response(400, "", "invalid_request_error", "no")
            }
            1 => {
                let look = ("search_knowledge", json!({"query": "年金", "top_k": "3"}));
                ApiBehavior::Rendezvous(
                    4,
                    Box::new(calls_response(&[look, ("no_such_tool", json!({}))])),
                )
            }
            3 if query.contains("policy") => {
                calls_response(&[("web_search", json!({"query": "年金"}))])
            }
            _ => text_response(&format!("意见:{query}")),
        };
        with_distinct_usage(with_requested_model(behavior, body), number as u64)
    })
}

/// Calls of all experts, of an unknown tool, of a slow tool that reports its progress, and a write with an invalid and a
/// valid input.
fn mixed_calls_input() -> String {
    let mut calls = all_experts();
    calls.push(("invoke_unknown_expert", json!({"query": "?"})));
    calls.push(("invoke_memory_manager", json!({"query": "整理"})));
    calls.push(("save_user_memory", json!({"key": "preference"})));
    calls.push((
        "save_user_memory",
        json!({"key": "preference", "value": "年金险"}),
    ));
    model_response(&calls)
}

/// Runs [`mixed_calls_input`], which leaves `log.jsonl`, `events.ndjson` and `cost.json` in the sandbox.
pub fn run_mixed_calls() -> CliOutput {
    let script = format!(
        r#""$TOOLQ" run -c {TOOLS_FILE} --log "$HOME/log.jsonl" --events "$HOME/events.ndjson" &&
        "$TOOLQ" log cost -c {TOOLS_FILE} --format json "$HOME/log.jsonl" > "$HOME/cost.json""#
    );
    let toolq = toolq(&expert_api()).env("PACE", "0.1");
    toolq
        .stdin(mixed_calls_input())
        .run_shell(&script)
        .assert_exit(0)
}

/// Every call's events arrive in order, accumulate its state and end in exactly one result.
#[test]
fn events_trace_every_call_to_its_result() {
    let ran = run_mixed_calls();
    let timeline =
        RunTimeline::from_run_events(&parse_json_lines(&ran.file("events.ndjson").unwrap()));
    assert_eq!(timeline.drained_turns, [0]);
    let of_input = |position: usize| &timeline.calls[&(None, 0, format!("toolu_{position}"))];
    let statuses: Vec<&str> = (0..9).map(|position| &*of_input(position).status).collect();
    let expected = [
        "ok",
        "ok",
        "agent_failed",
        "ok",
        "ok",
        "unknown_tool",
        "ok",
        "invalid_input",
        "ok",
    ];
    assert_eq!(statuses, expected);
    for (position, name) in EXPERTS.iter().enumerate() {
        let CallTimeline {
            event_types: types,
            agent_turns: turns,
            state,
            ..
        } = of_input(position);
        let expected_turns = match position {
            0 => 3,
            2 => 1,
            _ => 2,
        };
        assert_eq!(turns.len(), expected_turns, "{name}");
        assert_eq!(state["params"], json!({"query": format!("{name}?")}));
        // The tip from tools.yaml stays through all turns.
        let tip = state["tip"].as_str().unwrap();
        assert!(tip.ends_with("正在思考"), "{tip}");
        assert_eq!(types.last().unwrap(), "result_written");
        let expert_call = |id: &str| {
            timeline
                .calls
                .get(&(Some(format!("toolu_{position}")), 0, id.to_owned()))
        };
        if position == 2 {
            assert!(expert_call("a0").is_none());
            continue;
        }
        // Events have the coerced input, because that is what runs.
        let (lookup, unknown) = (expert_call("a0").unwrap(), expert_call("a1").unwrap());
        assert_eq!(lookup.state["params"], json!({"query": "年金", "top_k": 3}));
        assert_eq!(
            lookup.event_types,
            ["tool_queued", "tool_started", "tool_completed"]
        );
        assert_eq!(unknown.event_types, ["tool_queued", "tool_error"]);
    }
    let manager = of_input(6);
    assert!(manager.event_types.contains(&"tool_status".to_owned()));
    assert_eq!(manager.state["tip"], "正在查阅资料");
    assert_eq!(manager.state["progress"], 0.5);
    assert_eq!(
        of_input(5).event_types,
        ["tool_queued", "tool_error", "result_written"]
    );
    assert_eq!(
        of_input(7).event_types,
        ["tool_queued", "tool_error", "result_written"]
    );
}
