//! What a log and events say of an agent.

use std::path::Path;

use serde_json::{Value, json};
use toolq_core::json_schema::Schema;
use toolq_log::log_schema;

use crate::api::{Api, calls, text};
use crate::scenes::{ask, events};
use crate::support::Toolq;

fn field<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

#[test]
fn the_events_of_an_agent_are_a_story() {
    let api = Api::new(&[calls(&[("look", json!({"at": "home"}))]), text("It is so.")]);
    let ran = ask(&api, "      tools: [look]").exits(0);
    let lines: Vec<String> = events(&ran)
        .iter()
        .map(|event| {
            let of = if event["agent_tool_use_id"].is_null() {
                ""
            } else {
                "  "
            };
            let about = if event["max_turns"].is_null() {
                field(event, "tool_use_id").to_owned()
            } else {
                format!("{} of {}", event["turn"], event["max_turns"])
            };
            format!("{of}{} {about}", field(event, "type"))
                .trim_end()
                .to_owned()
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    tool_queued toolu_0
    batch_started
    tool_started toolu_0
    agent_started toolu_0
    agent_progress 1 of 3
      tool_queued a0
      batch_started
      tool_started a0
      tool_completed a0
    agent_progress 2 of 3
    agent_completed toolu_0
    tool_completed toolu_0
    result_written toolu_0
    queue_drained
    ");
}

#[test]
fn the_log_has_all_of_it_below_the_agents_call() {
    let api = Api::new(&[calls(&[("look", json!({"at": "home"}))]), text("It is so.")]);
    let ran = ask(&api, "      tools: [look]").exits(0);
    let log = ran.log();
    let name = |record: &Value| {
        let what = field(&record["metadata"], "tool_use_id").to_owned()
            + field(&record["content"], "name");
        format!("{} {what}", field(record, "type"))
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
    let schema = Schema::compile(&log_schema(), Path::new("/")).unwrap();
    for record in &log {
        assert!(schema.accepts(record), "{record}");
    }
    let responses: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "model_response")
        .collect();
    assert_eq!(responses[1]["content"]["content"][0]["text"], "It is so.");
    let digest = responses[0]["metadata"]["request_sha256"].as_str().unwrap();
    assert_eq!(digest.len(), 64);
}

/// A log with agents is an input, whose calls are those of the input; and it is whole.
#[test]
fn a_log_with_agents_can_be_read() {
    let api = Api::new(&[calls(&[("look", json!({"at": "home"}))]), text("It is so.")]);
    let ran = ask(&api, "      tools: [look]").exits(0);
    let folder = ran.dir.path().join("state/toolq/sessions");
    let log = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let plan = Toolq::new()
        .tools(&crate::scenes::tools(""))
        .run(&["plan", "--all", "--format", "json", log.to_str().unwrap()])
        .exits(0);
    let turns = plan.lines();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["batches"][0]["calls"][0]["tool_name"], "expert");
}

#[test]
fn a_plan_shows_who_is_asked_and_no_secret() {
    let plan = Toolq::new()
        .tools(&crate::scenes::tools(
            "      tools: [look]\n      prompt: \"Q: {query}\"",
        ))
        .env("BASE", "http://h")
        .env("KEY", crate::scenes::CANARY)
        .stdin(crate::support::response(&[(
            "expert",
            json!({"query": "why?"}),
        )]))
        .run(&["plan", "--format", "json"])
        .exits(0);
    assert_eq!(
        plan.json()["batches"][0]["calls"][0]["runs"],
        json!({"agent": {"model": "model-1", "endpoint": "${BASE}", "tools": ["look"], "prompt": "Q: why?"}})
    );
}

/// The calls of an agent are none of the input's: a run that resumes takes the agent's answer from the log.
#[test]
fn a_finished_agent_is_not_asked_again() {
    let api = Api::new(&[calls(&[("look", json!({"at": "home"}))]), text("It is so.")]);
    let input = crate::support::response(&[("expert", json!({"query": "why?"}))]);
    let script = "\"$TOOLQ\" run -q --log s.jsonl in.json > first; \"$TOOLQ\" run -q --resume --log s.jsonl in.json > second; cmp first second && cat second";
    let ran = crate::scenes::toolq(&api, "      tools: [look]")
        .file("in.json", input)
        .shell(script)
        .exits(0);
    assert!(ran.stdout.contains("It is so."), "{}", ran.stderr);
    assert_eq!(api.heard().len(), 2);
}
