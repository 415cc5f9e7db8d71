//! The coordinator fixture: its model calls experts, who are agents themselves.

use serde_json::{Value, json};

use crate::api::{Act, Api, calls, text};
use crate::support::{Toolq, response};

const FILE: &str = "fixtures/coordinator/tools.yaml";
const EXPERTS: [&str; 5] = [
    "invoke_policy_expert",
    "invoke_assessment_expert",
    "invoke_strategist",
    "invoke_objection_handler",
    "invoke_case_analyst",
];

fn all_experts() -> Vec<(&'static str, Value)> {
    let ask = |name: &'static str| (name, json!({"query": format!("{name}?")}));
    EXPERTS.map(ask).to_vec()
}

/// An expert looks something up, then answers its question. The first requests of all five wait for each other.
fn expert(body: &Value) -> Act {
    let messages = body["messages"].as_array().unwrap();
    match messages.len() {
        1 => {
            let look = calls(&[("search_knowledge", json!({"query": "年金"}))]);
            Act::Meet(5, Box::new(look))
        }
        _ => text(&format!(
            "意见:{}",
            messages[0]["content"].as_str().unwrap()
        )),
    }
}

/// The same as an answer of the model that was asked.
fn by_model(act: Act, body: &Value) -> Act {
    let model = format!("{}-20260101", body["model"].as_str().unwrap());
    match act {
        Act::Say(status, headers, body) => {
            Act::Say(status, headers, body.replace("model-1-20260101", &model))
        }
        Act::Meet(count, then) => Act::Meet(count, Box::new(by_model(*then, body))),
        other => other,
    }
}

fn toolq(api: &Api) -> Toolq {
    Toolq::in_repository()
        .env("ANTHROPIC_BASE_URL", &api.url)
        .env("ANTHROPIC_API_KEY", crate::scenes::CANARY)
}

#[test]
fn five_experts_work_at_the_same_time() {
    let api = Api::by(|_, body| expert(body));
    let ran = toolq(&api)
        .stdin(response(&all_experts()))
        .run(&["run", "-c", FILE])
        .exits(0);
    let expected = EXPERTS.map(|name| (format!("意见:{name}?"), false));
    assert_eq!(ran.texts(), expected);
    assert_eq!(api.heard().len(), 10);
    // Their own calls are in the log below them.
    let log = ran.log();
    let inner = log.iter().filter(|record| {
        record["type"] == "tool_result" && record["metadata"]["tool_name"] == "search_knowledge"
    });
    assert_eq!(inner.count(), 5);
}

#[test]
fn the_coordinator_itself_is_an_agent() {
    let api = Api::by(|_, body| {
        let messages = body["messages"].as_array().unwrap();
        let is_coordinator = body["tools"].as_array().unwrap().len() == 14;
        let act = match (is_coordinator, messages.len()) {
            (false, _) => expert(body),
            (true, 1) => calls(&all_experts()),
            (true, 3) => calls(&[
                (
                    "save_user_memory",
                    json!({"key": "preference", "value": "年金险"}),
                ),
                (
                    "generate_payment",
                    json!({"plan": "A", "amount": "100.00", "currency": "CNY"}),
                ),
            ]),
            _ => text("方案已备好。"),
        };
        by_model(act, body)
    });
    let ran = toolq(&api)
        .stdin(r#"{"request": "请给我一个养老方案"}"#)
        .run(&["agent", "coordinator", "-c", FILE, "--to", "json"])
        .exits(0);
    let report = ran.json();
    assert_eq!(report["text"], "方案已备好。");
    assert_eq!(report["turns_used"], 3);
    assert_eq!(report["tool_calls_made"], 7);
    assert_eq!(report["usage"]["claude-sonnet-4-5-20260101"]["input"], 900);
    assert_eq!(report["usage"]["claude-haiku-4-5-20260101"]["input"], 400);
    // Nine answers of the one for 455.25 millionths of a dollar, four of the other for 151.75.
    assert_eq!(report["estimated_cost_usd"], 0.004_704_25);
    let log = ran.log();
    let by_name = |name: &str| {
        let of = log
            .iter()
            .filter(|record| record["metadata"]["agent_name"] == name);
        of.count()
    };
    assert_eq!(EXPERTS.map(by_name), [1; 5]);
    assert_eq!(by_name("coordinator"), 1);
}
