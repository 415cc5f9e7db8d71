//! The coordinator fixture: its model calls experts, who are agents themselves.

use serde_json::{Value, json};

use crate::api::{Act, Api, calls, error, text};
use crate::story::{Story, Told};
use crate::support::{Ran, Toolq, json_lines, response};

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
        .shell(&format!(
            r#""$TOOLQ" agent coordinator -c {FILE} --to json --events "$HOME/events.ndjson""#
        ))
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
    let story = Story::of_agent(&json_lines(&ran.file("events.ndjson").unwrap()));
    // The coordinator, its seven calls, and one of each expert.
    assert_eq!(story.calls.len(), 13);
    for (at, name) in EXPERTS.iter().enumerate() {
        let of_coordinator = Some("toolq_coordinator".to_owned());
        assert_eq!(
            &story.calls[&(of_coordinator, 0, format!("a{at}"))].name,
            name
        );
        let looked = &story.calls[&(Some(format!("a{at}")), 0, "a0".to_owned())];
        assert_eq!((&*looked.name, &*looked.status), ("search_knowledge", "ok"));
    }
}

/// Each answer of the API has tokens of its own, of every kind.
fn counted(act: Act, number: u64) -> Act {
    match act {
        Act::Say(status, headers, body) => {
            let mut body: Value = serde_json::from_str(&body).unwrap();
            if body["usage"].is_object() {
                body["usage"] = json!({
                    "input_tokens": 1_001 + 7 * number, "output_tokens": 101 + 3 * number,
                    "cache_read_input_tokens": 5_003 + 11 * number, "cache_creation_input_tokens": 307 + 13 * number,
                });
            }
            Act::Say(status, headers, body.to_string())
        }
        Act::Meet(count, then) => Act::Meet(count, Box::new(counted(*then, number))),
        other => other,
    }
}

/// The experts at work; one of them gets no answer, and each looks up something that there is and something that there
/// is not.
fn scripted() -> Api {
    Api::by(|number, body| {
        let messages = body["messages"].as_array().unwrap();
        let query = messages[0]["content"].as_str().unwrap();
        let act = match messages.len() {
            _ if query.contains("strategist") => error(400, "", "invalid_request_error", "no"),
            1 => {
                let look = ("search_knowledge", json!({"query": "年金", "top_k": "3"}));
                Act::Meet(4, Box::new(calls(&[look, ("no_such_tool", json!({}))])))
            }
            3 if query.contains("policy") => calls(&[("web_search", json!({"query": "年金"}))]),
            _ => text(&format!("意见:{query}")),
        };
        counted(by_model(act, body), number as u64)
    })
}

/// All experts, somebody nobody knows, and two that must run alone, of which one says how far it is.
fn asked() -> String {
    let mut asked = all_experts();
    asked.push(("invoke_nobody", json!({"query": "?"})));
    asked.push(("invoke_memory_manager", json!({"query": "整理"})));
    asked.push(("save_user_memory", json!({"key": "preference"})));
    asked.push((
        "save_user_memory",
        json!({"key": "preference", "value": "年金险"}),
    ));
    response(&asked)
}

/// A run of that, with what it cost: `log.jsonl`, `events.ndjson`, `cost.json`.
pub fn run_of_all() -> Ran {
    let script = format!(
        r#""$TOOLQ" run -c {FILE} --log "$HOME/log.jsonl" --events "$HOME/events.ndjson" &&
        "$TOOLQ" log cost -c {FILE} --format json "$HOME/log.jsonl" > "$HOME/cost.json""#
    );
    let toolq = toolq(&scripted()).env("PACE", "0.1");
    toolq.stdin(asked()).shell(&script).exits(0)
}

/// DESIGN §7.
#[test]
fn the_events_of_a_run_are_the_story_of_each_call() {
    let ran = run_of_all();
    let story = Story::of(&json_lines(&ran.file("events.ndjson").unwrap()));
    assert_eq!(story.drained, [0]);
    let of_input = |position: usize| &story.calls[&(None, 0, format!("toolu_{position}"))];
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
        let Told {
            types,
            turns,
            state,
            ..
        } = of_input(position);
        let asked = match position {
            0 => 3,
            2 => 1,
            _ => 2,
        };
        assert_eq!(turns.len(), asked, "{name}");
        assert_eq!(state["params"], json!({"query": format!("{name}?")}));
        // The author's words stay, however many turns it takes.
        let words = state["tip"].as_str().unwrap();
        assert!(words.ends_with("正在思考"), "{words}");
        assert_eq!(types.last().unwrap(), "result_written");
        let inner = |id: &str| {
            story
                .calls
                .get(&(Some(format!("toolu_{position}")), 0, id.to_owned()))
        };
        if position == 2 {
            assert!(inner("a0").is_none());
            continue;
        }
        // What runs is the mended input, and that is what is told.
        let (found, unknown) = (inner("a0").unwrap(), inner("a1").unwrap());
        assert_eq!(found.state["params"], json!({"query": "年金", "top_k": 3}));
        assert_eq!(
            found.types,
            ["tool_queued", "tool_started", "tool_completed"]
        );
        assert_eq!(unknown.types, ["tool_queued", "tool_error"]);
    }
    let manager = of_input(6);
    assert!(manager.types.contains(&"tool_status".to_owned()));
    assert_eq!(manager.state["tip"], "正在查阅资料");
    assert_eq!(manager.state["progress"], 0.5);
    assert_eq!(
        of_input(5).types,
        ["tool_queued", "tool_error", "result_written"]
    );
    assert_eq!(
        of_input(7).types,
        ["tool_queued", "tool_error", "result_written"]
    );
}
