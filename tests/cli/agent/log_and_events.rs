//! What the session log and events contain about an agent.

use serde_json::{Value, json};
use toolq_core::json_schema::CompiledSchema;
use toolq_log::log_schema;

use crate::agent::expert_fixture::{read_events, run_expert};
use crate::support::CliSandbox;
use crate::support::scripted_api::{ScriptedApi, calls_response, text_response};

fn str_field<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

#[test]
fn agent_events_are_nested_in_its_call() {
    let api = ScriptedApi::new(&[
        calls_response(&[("look", json!({"at": "home"}))]),
        text_response("It is so."),
    ]);
    let ran = run_expert(&api, "      tools: [look]").assert_exit(0);
    let lines: Vec<String> = read_events(&ran)
        .iter()
        .map(|event| {
            let indent = if event["agent_tool_use_id"].is_null() {
                ""
            } else {
                "  "
            };
            let subject = if event["max_turns"].is_null() {
                str_field(event, "tool_use_id").to_owned()
            } else {
                format!("{} of {}", event["turn"], event["max_turns"])
            };
            format!("{indent}{} {subject}", str_field(event, "type"))
                .trim_end()
                .to_owned()
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    tool_queued toolu_0
    batch_started
    tool_started toolu_0
    agent_started toolu_0
    agent_progress 0 of 3
      tool_queued a0
      batch_started
      tool_started a0
      tool_completed a0
    agent_progress 1 of 3
    agent_completed toolu_0
    tool_completed toolu_0
    result_written toolu_0
    queue_drained
    ");
}

#[test]
fn agent_records_descend_from_its_call() {
    let api = ScriptedApi::new(&[
        calls_response(&[("look", json!({"at": "home"}))]),
        text_response("It is so."),
    ]);
    let ran = run_expert(&api, "      tools: [look]").assert_exit(0);
    let log = ran.log_records();
    let name = |record: &Value| {
        let subject = str_field(&record["metadata"], "tool_use_id").to_owned()
            + str_field(&record["content"], "name");
        format!("{} {subject}", str_field(record, "type"))
            .trim_end()
            .to_owned()
    };
    let lines: Vec<String> = log
        .iter()
        .map(|record| {
            let parent = log.iter().find(|other| other["id"] == record["parentId"]);
            format!(
                "{} < {}",
                name(record),
                parent.map(name).unwrap_or_default()
            )
            .trim_end()
            .to_owned()
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    session <
    turn < session
    tool_call toolu_0expert < turn
    tool_start toolu_0 < tool_call toolu_0expert
    model_response toolu_0 < tool_call toolu_0expert
    turn < tool_call toolu_0expert
    tool_call a0look < turn
    tool_start a0 < tool_call a0look
    tool_result a0 < tool_call a0look
    model_response toolu_0 < tool_call toolu_0expert
    tool_result toolu_0 < tool_call toolu_0expert
    session_end < session
    ");
    let schema = CompiledSchema::compile(&log_schema()).unwrap();
    for record in &log {
        assert!(schema.accepts(record), "{record}");
    }
    let responses: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "model_response")
        .collect();
    assert_eq!(responses[1]["content"]["content"][0]["text"], "It is so.");
    assert_eq!(responses[0]["metadata"]["message_id"], "msg_1");
    let agent_turn = log
        .iter()
        .find(|record| record["metadata"]["agent"] == "expert" && record["type"] == "turn");
    assert_eq!(
        agent_turn.unwrap()["metadata"],
        json!({"turn": 0, "agent": "expert", "message_id": "msg_1", "model": "model-1-20260101"})
    );
    let mut results = log.iter().filter(|record| record["type"] == "tool_result");
    let used = &results.next_back().unwrap()["metadata"];
    assert_eq!(used["tools_called"], json!(["look"]));
}

/// A session log with agents can be used as input. It has only the calls of the original input, not those of agents.
#[test]
fn a_log_with_agents_is_a_valid_input() {
    let api = ScriptedApi::new(&[
        calls_response(&[("look", json!({"at": "home"}))]),
        text_response("It is so."),
    ]);
    let ran = run_expert(&api, "      tools: [look]").assert_exit(0);
    let dir = ran.dir.path().join("state/toolq/sessions");
    let log = std::fs::read_dir(dir)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let plan = CliSandbox::new()
        .tools(&crate::agent::expert_fixture::expert_tools(""))
        .run(&["plan", "--all", "--format", "json", log.to_str().unwrap()])
        .assert_exit(0);
    let turns = plan.lines();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["batches"][0]["calls"][0]["tool_name"], "expert");
}

#[test]
fn a_plan_shows_the_agents_model_and_no_secret() {
    let plan = CliSandbox::new()
        .tools(&crate::agent::expert_fixture::expert_tools(
            "      tools: [look]\n      prompt: \"Q: {query}\"",
        ))
        .env("BASE", "http://h")
        .env("KEY", crate::agent::expert_fixture::CANARY)
        .stdin(crate::support::model_response(&[(
            "expert",
            json!({"query": "why?"}),
        )]))
        .run(&["plan", "--format", "json"])
        .assert_exit(0);
    assert_eq!(
        plan.json()["batches"][0]["calls"][0]["runs"],
        json!({"agent": {"model": "model-1", "endpoint": "${BASE}", "tools": ["look"], "prompt": "Q: why?"}})
    );
}

/// A resumed run restores the answer of a finished agent from the log without running it again.
#[test]
fn a_finished_agent_is_restored_from_the_log() {
    let api = ScriptedApi::new(&[
        calls_response(&[("look", json!({"at": "home"}))]),
        text_response("It is so."),
    ]);
    let input = crate::support::model_response(&[("expert", json!({"query": "why?"}))]);
    let script = "\"$TOOLQ\" run -q --log s.jsonl in.json > first; \"$TOOLQ\" run -q --log s.jsonl in.json > second; cmp first second && cat second";
    let ran = crate::agent::expert_fixture::toolq(&api, "      tools: [look]")
        .file("in.json", input)
        .run_shell(script)
        .assert_exit(0);
    assert!(ran.stdout.contains("It is so."), "{}", ran.stderr);
    assert_eq!(api.requests().len(), 2);
}
