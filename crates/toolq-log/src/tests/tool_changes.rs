//! Which tools have changed since a task called them, as far as that matters to a call that still has to run.

use crate::records::ToolMeaning;
use crate::tests::listed_records::{list_history, start_of};

use super::*;

use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::ToolsConfig;

const TOOLS: &str = r#"
tools:
  lead:
    description: Ask a model.
    input_schema: {type: object}
    agent: {endpoint: "https://api.example", model: m, max_turns: 3, tools: [look, expert]}
  expert:
    description: Ask a model.
    input_schema: {type: object}
    agent: {endpoint: "https://api.example", model: m, max_turns: 3, tools: [look, pay, plan]}
  look:
    description: Look.
    input_schema: {type: object}
    command: {argv: [look]}
  pay:
    description: Pay.
    input_schema: {type: object}
    command: {argv: [pay]}
  plan:
    description: Plan.
    describe: [plan, --describe]
    command: {argv: [plan]}
"#;

fn parse_tools(yaml: &str) -> ToolsConfig {
    let loaded = parse_tools_file(yaml, Path::new("/work"), Path::new("/work"));
    loaded.tools.unwrap()
}

/// The log of a task that called these tools, as `tools` declares them.
fn history_after_calls(tools: &ToolsConfig, names: &[&str]) -> TaskHistory {
    let mut records = vec![
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
    ];
    for (position, name) in names.iter().enumerate() {
        let mut meaning = ToolMeaning::new(tools.get(name).unwrap()).0;
        if *name == "plan" {
            meaning.insert("input_schema".into(), "0123456789abcdef".to_owned());
        }
        let metadata = json!({"tool_name": name, "position": position, "tool_meaning": meaning});
        records.push((10 + position as u128, "tool_call", 2, metadata));
    }
    list_history(&records)
}

/// Lists the changes that affect a call which the log doesn't have.
fn changes_for(history: &TaskHistory, name: &str, tools: &ToolsConfig) -> Vec<String> {
    let checked = accepted_call(99, sample_tool(name), false, "{}");
    let changes = history.changes_affecting(&checked, tools);
    changes.iter().map(ToString::to_string).collect()
}

const ALL: [&str; 5] = ["lead", "expert", "look", "pay", "plan"];

#[test]
fn a_changed_tool_affects_its_calls_and_those_of_agents_that_may_call_it() {
    let logged = parse_tools(TOOLS);
    let history = history_after_calls(&logged, &ALL);
    let none: [&str; 0] = [];
    for name in ALL {
        assert_eq!(changes_for(&history, name, &logged), none, "{name}");
    }
    let changed = TOOLS
        .replace("argv: [look]", "argv: [look, -v]")
        .replace("argv: [plan]", "argv: [plan, -v]");
    let changed = parse_tools(&changed);
    let (look, plan) = ("look (its command)", "plan (its command)");
    assert_eq!(changes_for(&history, "look", &changed), [look]);
    assert_eq!(changes_for(&history, "plan", &changed), [plan]);
    assert_eq!(changes_for(&history, "pay", &changed), none);
    assert_eq!(changes_for(&history, "lead", &changed), [look, plan]);
    let uncalled = history_after_calls(&logged, &["lead", "plan"]);
    assert_eq!(changes_for(&uncalled, "lead", &changed), [plan]);
}

#[test]
fn every_kind_of_change_is_named() {
    let logged = parse_tools(TOOLS);
    let history = history_after_calls(&logged, &ALL);
    let (tools, _) = TOOLS.split_once("  pay:").unwrap();
    let tools = tools
        .replace(", pay, plan]", "]")
        .replace("{argv: [look]}", "{argv: [look, -v]}\n    effect: read")
        .replace(
            "Look.\n    input_schema: {",
            "Look.\n    input_schema: {title: x, ",
        );
    let tools = parse_tools(&tools);
    let removed = changes_for(&history, "pay", &tools);
    assert_eq!(removed, ["pay (it is no longer declared)"]);
    let changed = changes_for(&history, "look", &tools);
    assert_eq!(changed, ["look (its command, effect, input_schema)"]);
    let older = [
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (3, "tool_call", 2, json!({"tool_name": "look"})),
    ];
    let unknown = changes_for(&list_history(&older), "look", &tools);
    let reason = "an older toolq logged it, so whether it has changed isn't known";
    assert_eq!(unknown, [format!("look ({reason})")]);
}

/// Its result is in the log, whatever the tool means now.
#[test]
fn a_changed_tool_does_not_affect_a_call_that_has_its_result() {
    let records = [
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (3, "tool_call", 2, json!({"tool_name": "look"})),
        start_of(4, 3, &json!({"tool_name": "look"})),
        (5, "tool_result", 3, json!({"tool_name": "look"})),
    ];
    let checked = accepted_call(0, sample_tool("look"), false, "{}");
    let tools = parse_tools(TOOLS);
    for (count, changes) in [(4, 0), (5, 0), (3, 1)] {
        let history = list_history(&records[..count]);
        // A `write` call that was cut off is answered as in doubt.
        let found = history.changes_affecting(&checked, &tools);
        assert_eq!(found.len(), changes, "{count}");
    }
}
