//! `read_output` of an agent's model reads that agent's outputs, and no others.

use serde_json::{Value, json};

use crate::agent::expert_fixture::{expert_tools, toolq};
use crate::support::model_response;
use crate::support::scripted_api::{ScriptedApi, calls_response, text_response};

const DUMP: &str = r"  dump:
    effect: read
    max_output: 100
    input_schema: {type: object}
    command: [seq, '1000']
";

/// Returns the text of the first result in the last message of a request.
fn last_result(api: &ScriptedApi, request: usize) -> String {
    let messages = api.messages(request);
    let content = &messages.last().unwrap()["content"];
    let block = content
        .as_array()
        .map_or(Value::Null, |blocks| blocks[0].clone());
    block["content"].as_str().unwrap().to_owned()
}

#[test]
fn an_agent_reads_its_own_outputs_and_neither_knows_those_of_the_other() {
    let read = |id: &str| calls_response(&[("read_output", json!({"id": id, "limit": 10}))]);
    let api = ScriptedApi::new(&[
        calls_response(&[("dump", json!({}))]),
        read("a0"),
        read("toolu_0"),
        text_response("done"),
    ]);
    let tools = expert_tools("      max_turns: 5\n      tools: [dump, read_output]")
        .replace("version: 1\n", "version: 1\nbuiltins: [read_output]\n");
    let calls = [
        ("dump", json!({})),
        ("expert", json!({"query": "why?"})),
        ("read_output", json!({"id": "a0"})),
    ];
    let ran = toolq(&api, "")
        .tools(&format!("{tools}{DUMP}"))
        .stdin(model_response(&calls))
        .run(&["run"]);
    let cut = last_result(&api, 1);
    assert!(cut.contains(r#"read_output {"id":"a0"} reads it"#), "{cut}");
    let page = last_result(&api, 2);
    assert_eq!(
        page,
        "[bytes 0 to 10 of 3893; continue with \"offset\": 10]\n1\n2\n3\n4\n5\n"
    );
    let unknown = last_result(&api, 3);
    assert!(unknown.contains("has the id \"toolu_0\""), "{unknown}");
    assert!(unknown.contains("cut: \"a0\"\n"), "{unknown}");
    let texts = ran.result_texts();
    assert!(
        texts[0]
            .0
            .contains(r#"read_output {"id":"toolu_0"} reads it"#),
        "{texts:?}"
    );
    assert!(texts[2].0.contains("has the id \"a0\""), "{texts:?}");
    assert!(texts[2].0.contains("cut: \"toolu_0\"\n"), "{texts:?}");
}

/// An agent that doesn't have the tool isn't pointed to it.
#[test]
fn an_agent_without_it_is_not_sent_there() {
    let api = ScriptedApi::new(&[
        calls_response(&[("dump", json!({}))]),
        text_response("done"),
    ]);
    let tools = expert_tools("      tools: [dump]")
        .replace("version: 1\n", "version: 1\nbuiltins: [read_output]\n");
    toolq(&api, "")
        .tools(&format!("{tools}{DUMP}"))
        .stdin(model_response(&[("expert", json!({"query": "why?"}))]))
        .run(&["run"])
        .assert_exit(0);
    let cut = last_result(&api, 1);
    assert!(cut.contains("the whole output is in"), "{cut}");
    assert!(!cut.contains("read_output"), "{cut}");
}
