//! The fixtures run and plan as their files say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

#[path = "agent/api.rs"]
mod api;
mod support;

use serde_json::{Value, json};
use support::{Toolq, json_lines};

fn plan(agent: &str, turn: &str) -> Value {
    let ran = Toolq::in_repository()
        .run(&[
            "plan",
            "--format",
            "json",
            "-c",
            &format!("fixtures/{agent}/tools.yaml"),
            &format!("fixtures/{agent}/turns/{turn}.json"),
        ])
        .exits(0);
    json_lines(&ran.stdout).remove(0)
}

/// The names of the calls of each batch.
fn batches(plan: &Value) -> Vec<Vec<String>> {
    plan["batches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|batch| {
            let calls = batch["calls"].as_array().unwrap();
            assert_eq!(batch["parallel"], calls.len() > 1);
            calls
                .iter()
                .map(|call| call["tool_name"].as_str().unwrap().to_owned())
                .collect()
        })
        .collect()
}

/// The experts are agents: here they answer at once.
fn run(agent: &str, turn: &str) -> support::Ran {
    let api = api::Api::new(&[api::text("先核对客户需求。")]);
    Toolq::in_repository()
        .env("ANTHROPIC_BASE_URL", &api.url)
        .env("ANTHROPIC_API_KEY", "none")
        .run(&[
            "run",
            "-c",
            &format!("fixtures/{agent}/tools.yaml"),
            &format!("fixtures/{agent}/turns/{turn}.json"),
        ])
        .exits(0)
}

#[test]
fn the_coordinator_plans_its_four_scenes() {
    for (turn, serial, planned, in_batches) in [
        ("assess", 8_000, 4_000, 1),
        ("remember", 5_000, 5_000, 2),
        ("pay", 7_000, 7_000, 3),
        ("mixed", 10_000, 8_000, 3),
    ] {
        let plan = plan("coordinator", turn);
        assert_eq!(
            plan["estimate"],
            json!({"serial_ms": serial, "planned_ms": planned, "unknown": 0}),
            "{turn}"
        );
        assert_eq!(batches(&plan).len(), in_batches, "{turn}");
        assert_eq!(plan["rejected"], json!([]), "{turn}");
    }
}

#[test]
fn the_coordinators_safety_comes_from_names() {
    let plan = plan("coordinator", "remember");
    let decided: Vec<(bool, String)> = plan["batches"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|batch| batch["calls"].as_array().unwrap())
        .map(|call| {
            (
                call["concurrency_safe"].as_bool().unwrap(),
                call["decided_by"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(
        decided,
        [
            (true, "rule {invoke,search,get,check}_*".to_owned()),
            (false, "rule invoke_memory_manager".to_owned())
        ]
    );
}

#[test]
fn the_coding_agent_plans_its_three_turns() {
    assert_eq!(
        batches(&plan("coding", "reads")),
        [["file_read", "file_read", "file_read"]]
    );
    assert_eq!(
        batches(&plan("coding", "write_then_validate")),
        [["file_write"], ["validate"]]
    );
    assert_eq!(
        batches(&plan("coding", "mixed")),
        [
            vec!["glob", "file_read", "file_read"],
            vec!["file_write"],
            vec!["grep", "ls"]
        ]
    );
}

#[test]
fn all_turns_of_the_fixtures_run() {
    for (agent, turns) in [
        ("coordinator", &["assess", "remember", "pay", "mixed"][..]),
        ("coding", &["reads", "write_then_validate", "mixed"]),
    ] {
        for turn in turns {
            let ran = run(agent, turn);
            for (text, error) in ran.texts() {
                assert!(!error, "{agent}/{turn}: {text}");
            }
        }
    }
}

#[test]
fn what_the_coding_agent_wrote_is_read_by_the_calls_behind_it() {
    let ran = run("coding", "mixed");
    let texts = ran.texts();
    assert!(texts[5].0.contains("notes.md"), "{}", texts[5].0);
    let ran = run("coding", "write_then_validate");
    assert!(ran.texts()[1].0.contains("syntax ok"));
}

#[test]
fn the_coordinators_model_reads_chinese() {
    let asked = support::response(&[
        ("search_knowledge", json!({"question": "x"})),
        ("no_such_tool", json!({})),
    ]);
    let ran = Toolq::in_repository()
        .stdin(asked)
        .run(&["run", "-c", "fixtures/coordinator/tools.yaml"])
        .exits(0);
    let texts = ran.texts();
    assert!(
        texts[0].0.starts_with("工具 search_knowledge 的参数无效"),
        "{}",
        texts[0].0
    );
    assert!(texts[0].0.contains("- /question: "), "{}", texts[0].0);
    assert!(
        texts[1].0.starts_with("没有名为 no_such_tool 的工具"),
        "{}",
        texts[1].0
    );
}

#[test]
fn every_fixture_has_no_problems() {
    for file in [
        "tools.yaml",
        "fixtures/coding/tools.yaml",
        "fixtures/coordinator/tools.yaml",
    ] {
        let toolq = Toolq::in_repository().env("ANTHROPIC_API_KEY", "none");
        let ran = toolq.run(&["check", "--strict", "-c", file]);
        assert_eq!(ran.code, 0, "{file}: {}", ran.stderr);
    }
}

#[test]
fn the_quick_start_answers_seven_calls() {
    let ran = Toolq::in_repository()
        .run(&["run", "fixtures/response.json"])
        .exits(0);
    let errors: Vec<bool> = ran.texts().into_iter().map(|(_, error)| error).collect();
    assert_eq!(errors, [false, false, true, false, false, false, true]);
}
