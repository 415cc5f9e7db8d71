//! The fixtures plan and run as documented.

use crate::support::{CliSandbox, parse_json_lines};
use serde_json::{Value, json};

fn plan_fixture(agent: &str, turn: &str) -> Value {
    let ran = CliSandbox::in_repository()
        .run(&[
            "plan",
            "--format",
            "json",
            "-c",
            &format!("fixtures/{agent}/tools.yaml"),
            &format!("fixtures/{agent}/turns/{turn}.json"),
        ])
        .assert_exit(0);
    parse_json_lines(&ran.stdout).remove(0)
}

/// Returns the tool names of each batch.
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

/// Runs a turn of a fixture. Its experts are agents, whose model is scripted here and answers immediately.
fn run_fixture(agent: &str, turn: &str) -> crate::support::CliOutput {
    let api = crate::support::scripted_api::ScriptedApi::new(&[
        crate::support::scripted_api::text_response("先核对客户需求。"),
    ]);
    CliSandbox::in_repository()
        .env("ANTHROPIC_BASE_URL", &api.url)
        .env("ANTHROPIC_API_KEY", "none")
        .run(&[
            "run",
            "-c",
            &format!("fixtures/{agent}/tools.yaml"),
            &format!("fixtures/{agent}/turns/{turn}.json"),
        ])
        .assert_exit(0)
}

#[test]
fn the_coordinator_plans_its_four_turns() {
    for (turn, serial, planned, in_batches) in [
        ("assess", 8_000, 4_000, 1),
        ("remember", 5_000, 5_000, 2),
        ("pay", 7_000, 7_000, 3),
        ("mixed", 10_000, 8_000, 3),
    ] {
        let plan = plan_fixture("coordinator", turn);
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
fn the_coordinators_safety_is_decided_by_name_rules() {
    let plan = plan_fixture("coordinator", "remember");
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
        batches(&plan_fixture("coding", "reads")),
        [["file_read", "file_read", "file_read"]]
    );
    assert_eq!(
        batches(&plan_fixture("coding", "write_then_validate")),
        [["file_write"], ["validate"]]
    );
    assert_eq!(
        batches(&plan_fixture("coding", "mixed")),
        [
            vec!["glob", "file_read", "file_read"],
            vec!["file_write"],
            vec!["grep", "ls"]
        ]
    );
}

#[test]
fn all_turns_of_the_fixtures_succeed() {
    for (agent, turns) in [
        ("coordinator", &["assess", "remember", "pay", "mixed"][..]),
        ("coding", &["reads", "write_then_validate", "mixed"]),
    ] {
        for turn in turns {
            let ran = run_fixture(agent, turn);
            for (text, error) in ran.result_texts() {
                assert!(!error, "{agent}/{turn}: {text}");
            }
        }
    }
}

#[test]
fn later_calls_read_what_the_coding_agent_wrote() {
    let ran = run_fixture("coding", "mixed");
    let texts = ran.result_texts();
    assert!(texts[5].0.contains("notes.md"), "{}", texts[5].0);
    let ran = run_fixture("coding", "write_then_validate");
    assert!(ran.result_texts()[1].0.contains("syntax ok"));
}

#[test]
fn the_coordinators_model_gets_messages_in_chinese() {
    let input = crate::support::model_response(&[
        ("search_knowledge", json!({"question": "x"})),
        ("no_such_tool", json!({})),
    ]);
    let ran = CliSandbox::in_repository()
        .stdin(input)
        .run(&["run", "-c", "fixtures/coordinator/tools.yaml"])
        .assert_exit(0);
    let texts = ran.result_texts();
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
fn fixtures_pass_a_strict_check() {
    for file in [
        "tools.yaml",
        "fixtures/coding/tools.yaml",
        "fixtures/coordinator/tools.yaml",
    ] {
        let toolq = CliSandbox::in_repository().env("ANTHROPIC_API_KEY", "none");
        let ran = toolq.run(&["check", "--strict", "-c", file]);
        assert_eq!(ran.code, 0, "{file}: {}", ran.stderr);
    }
}

#[test]
fn the_quick_start_answers_seven_calls() {
    let ran = CliSandbox::in_repository()
        .run(&["run", "fixtures/response.json"])
        .assert_exit(0);
    let errors: Vec<bool> = ran
        .result_texts()
        .into_iter()
        .map(|(_, error)| error)
        .collect();
    assert_eq!(errors, [false, false, true, false, false, false, true]);
}

#[test]
fn sessions_of_other_programs_can_be_replayed() {
    for (dialect, session) in [
        ("claude-code", "claude-code.jsonl"),
        ("codex", "codex.jsonl"),
    ] {
        let ran = CliSandbox::in_repository()
            .run(&[
                "replay",
                "--from",
                dialect,
                &format!("fixtures/sessions/{session}"),
            ])
            .assert_exit(0);
        let note = "2 calls: none differ, 2 match\n";
        assert!(ran.stderr.contains(note), "{session}: {}", ran.stderr);
    }
}

/// A pattern with a slash is matched against the whole path.
#[test]
fn the_coding_agent_finds_files_by_path() {
    let find = |pattern: &str| {
        let call =
            json!({"type": "tool_use", "id": "a", "name": "glob", "input": {"pattern": pattern}});
        let ran = CliSandbox::in_repository()
            .stdin(call.to_string())
            .run(&["run", "-q", "--no-log", "-c", "fixtures/coding/tools.yaml"])
            .assert_exit(0);
        let text = ran.json()["content"].as_str().unwrap().to_owned();
        text.lines()
            .filter(|line| line.ends_with("greet.sh"))
            .count()
    };
    for (pattern, count) in [
        ("*.sh", 1),
        ("src/*.sh", 1),
        ("**/*.sh", 1),
        ("src/**/*.sh", 1),
        ("*/greet.?h", 1),
        ("s*.sh", 0),
        ("lib/**/*.sh", 0),
    ] {
        assert_eq!(find(pattern), count, "{pattern}");
    }
}
