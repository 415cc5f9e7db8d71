//! Agents whose tools describe themselves, and an agent that describes its own input.

use serde_json::{Value, json};

use crate::agent::expert_fixture::{expert_tools, run_expert_in, single_result, toolq};
use crate::support::scripted_api::{ScriptedApi, calls_response, text_response};
use crate::support::{CliSandbox, model_response};

/// Tools that describe themselves, and record that in the file `described`: `say`, which the expert has, and `other`, which
/// it doesn't have.
const SELF_DESCRIBING_TOOLS: &str = r#"
  say:
    describe: [sh, -c, 'echo say >> described; cat description.json']
    effect: read
    command: [printf, "%s", "{x}"]
  other:
    describe: [sh, -c, 'echo other >> described; cat description.json']
    effect: read
    command: [echo]
"#;

fn description_with(property: &str) -> String {
    let schema = json!({"type": "object", "properties": {property: {"type": "string"}}, "required": [property]});
    json!({"description": "Says it.", "input_schema": schema}).to_string()
}

/// The expert's model calls `say` with a valid and an invalid input, then answers.
fn say_then_answer() -> ScriptedApi {
    ScriptedApi::new(&[
        calls_response(&[("say", json!({"x": "hello"})), ("say", json!({}))]),
        text_response("It is so."),
    ])
}

fn with_self_describing_tools(api: &ScriptedApi, extra_tools: &str) -> CliSandbox {
    let file = expert_tools("      tools: [say]") + SELF_DESCRIBING_TOOLS + extra_tools;
    toolq(api, "")
        .tools(&file)
        .file("description.json", description_with("x"))
}

/// The model gets the tool's own description, and calls are checked against it. No other tool is described.
#[test]
fn the_model_gets_what_its_tools_describe() {
    let assert_described = |api: &ScriptedApi, described: &str| {
        let declared = &api.requests()[0].body["tools"][0];
        assert_eq!(declared["description"], "Says it.");
        assert_eq!(declared["input_schema"]["required"], json!(["x"]));
        let results = api.messages(1)[2]["content"].clone();
        assert_eq!(results[0]["content"], "hello");
        let invalid = results[1]["content"].as_str().unwrap();
        assert!(invalid.contains("/x: is required"), "{invalid}");
        assert_eq!(described, "say\n");
    };
    let api = say_then_answer();
    let ran = run_expert_in(with_self_describing_tools(&api, "")).assert_exit(0);
    assert_eq!(single_result(&ran), ("It is so.".to_owned(), false));
    assert_described(&api, &ran.file("described").unwrap());
    let api = say_then_answer();
    let alone = with_self_describing_tools(&api, "").stdin(r#"{"query": "why?"}"#);
    let ran = alone.run(&["call", "expert"]).assert_exit(0);
    assert_described(&api, &ran.file("described").unwrap());
    let log = ran.log_records();
    let end = log.iter().find(|record| record["type"] == "describe_end");
    assert_eq!(end.unwrap()["metadata"]["tool_name"], "say");
}

/// `new_task` names an agent, and only that agent's tools are described.
#[test]
fn new_task_describes_only_its_agents_tools() {
    let extra_tools = "  idle:\n    description: d\n    input_schema: {type: object}\n    agent: {endpoint: \"${BASE}\", model: m, tools: [other]}\n";
    let new_toolq = |api: &ScriptedApi| {
        let file = (expert_tools("      tools: [say]") + SELF_DESCRIBING_TOOLS + extra_tools)
            .replace("version: 1", "version: 1\nbuiltins: [new_task]");
        toolq(api, "")
            .tools(&file)
            .file("description.json", description_with("x"))
    };
    let task =
        |agent: &str| model_response(&[("new_task", json!({"agent": agent, "task": "why?"}))]);
    for (agent, expected) in [
        ("expert", Some("say\n")),
        ("idle", Some("other\n")),
        ("unknown", None),
    ] {
        let api = ScriptedApi::new(&[text_response("It is so.")]);
        let ran = new_toolq(&api)
            .stdin(task(agent))
            .run(&["run"])
            .assert_exit(0);
        assert_eq!(ran.file("described").as_deref(), expected, "{agent}");
    }
}

/// An agent's own input schema is known only after its `describe` ran. The log already exists at that point, and records
/// that nothing else ran if the input is invalid.
#[test]
fn an_agent_can_describe_its_own_input() {
    let extra_tools = "  guide:\n    describe: [sh, -c, 'echo guide >> described; cat description.json']\n    agent: {endpoint: \"${BASE}\", model: m}\n";
    let run = |input: &Value, code: i32| {
        let api = ScriptedApi::new(&[text_response("There.")]);
        let toolq = with_self_describing_tools(&api, extra_tools).stdin(input.to_string());
        (
            toolq.run(&["call", "guide"]).assert_exit(code),
            api.requests().len(),
        )
    };
    let (ran, requests) = run(&json!({"x": "where?"}), 0);
    assert_eq!((&*ran.stdout, requests), ("There.\n", 1));
    let (ran, requests) = run(&json!({"y": "where?"}), 2);
    assert_eq!((&*ran.stdout, requests), ("", 0));
    assert!(ran.stderr.contains("/x: is required"), "{}", ran.stderr);
    let log = ran.log_records();
    let kinds: Vec<&str> = log
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["session", "describe_start", "describe_end", "session_end"]
    );
    assert_eq!(log[3]["metadata"]["exit_code"], 2);
}

/// A server that isn't in tools.lock is queried before the agent starts, so that the agent's model gets its tool.
#[test]
fn the_model_gets_what_an_unlocked_server_announces() {
    let server = r#"#!/bin/sh
echo start >> starts
while read -r line; do
  rest=${line#*'"id":'}
  id=${rest%%,*}
  case $line in
  *discover*) result='"error":{"code":-32601,"message":"what?"}' ;;
  *initialize\"*) result='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
  *tools/list*) result='"result":{"tools":[{"name":"say","description":"Says it.","inputSchema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}},{"name":"other","inputSchema":{"type":"object"}}]}' ;;
  *tools/call*) result='"result":{"content":[{"type":"text","text":"hello"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$result"
done
"#;
    let api = ScriptedApi::new(&[
        calls_response(&[
            ("s_say", json!({"x": "hello"})),
            ("s_say", json!({})),
            ("s_other", json!({})),
        ]),
        text_response("It is so."),
    ]);
    let tools = expert_tools("      tools: [s_say]") + "servers:\n  s: {command: [./server]}\n";
    let calls = model_response(&[
        ("s_say", json!({"x": "first"})),
        ("expert", json!({"query": "why?"})),
    ]);
    let ran = toolq(&api, "")
        .tools(&tools)
        .program("server", server)
        .stdin(calls)
        .run(&["run", "-q"])
        .assert_exit(0);
    let texts = ["hello", "It is so."].map(|text| (text.to_owned(), false));
    assert_eq!(ran.result_texts(), texts);
    assert_eq!(
        ran.file("starts").as_deref(),
        Some("start\n"),
        "the agent shares the server of its run"
    );
    let declared = &api.requests()[0].body["tools"];
    assert_eq!(declared.as_array().unwrap().len(), 1);
    assert_eq!(declared[0]["description"], "Says it.");
    let results = api.messages(1)[2]["content"].clone();
    assert_eq!(results[0]["content"], "hello");
    let [invalid, unknown] = [1, 2].map(|index| results[index]["content"].to_string());
    assert!(invalid.contains("/x: is required"), "{invalid}");
    assert!(unknown.contains("Unknown tool"), "{unknown}");
}
