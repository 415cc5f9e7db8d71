//! The loop: asked, called, sent back, answered.

use serde_json::json;

use crate::api::{Act, Api, calls, message, ok, text};
use crate::scenes::{ask, asked, result, toolq};

#[test]
fn an_agent_calls_and_answers() {
    let api = Api::new(&[
        calls(&[("look", json!({"at": "home"})), ("fail", json!({}))]),
        text("It is so."),
    ]);
    let keys = "      system: Be brief.\n      tools: [look, fail]\n      max_tokens: 77";
    let ran = ask(&api, keys).exits(0);
    assert_eq!(result(&ran), ("It is so.".to_owned(), false));
    let heard = api.heard();
    assert_eq!(heard.len(), 2);
    assert!(heard[0].head.starts_with("POST /v1/messages "));
    assert!(heard[0].head.contains("anthropic-version: 2023-06-01\r\n"));
    let first = &heard[0].body;
    assert_eq!(
        [&first["model"], &first["system"], &first["max_tokens"]],
        [&json!("model-1"), &json!("Be brief."), &json!(77)]
    );
    let tools = first["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["look", "fail"]);
    assert_eq!(
        api.messages(0),
        [json!({"role": "user", "content": "{\n  \"query\": \"why?\"\n}"})]
    );
    let sent = &api.messages(1);
    assert_eq!(sent[1]["role"], "assistant");
    assert_eq!(sent[1]["content"].as_array().unwrap().len(), 3);
    assert_eq!(
        sent[2]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "a0", "content": "seen home", "is_error": false})
    );
    assert_eq!(sent[2]["content"][1]["is_error"], true);
    assert_eq!(heard[1].body["tools"], first["tools"]);
}

#[test]
fn a_prompt_has_values_of_the_input_and_the_environment() {
    let api = Api::new(&[text("ok")]);
    let keys = "      prompt: \"As ${WHO:-nobody}: {query}\"";
    asked(toolq(&api, keys).env("WHO", "{query}")).exits(0);
    assert_eq!(api.messages(0)[0]["content"], "As {query}: why?");
    assert_eq!(api.heard()[0].body.get("tools"), None);
}

/// FAULTS 103: a call that can't be is told to the model, which corrects itself; the log counts that.
#[test]
fn the_model_corrects_itself() {
    let api = Api::new(&[
        calls(&[
            ("lok", json!({})),
            ("look", json!({"at": 3})),
            ("write", json!({"what": "x"})),
        ]),
        calls(&[("look", json!({"at": "home"}))]),
        text("Now I know."),
    ]);
    let ran = ask(&api, "      tools: [look]").exits(0);
    assert_eq!(result(&ran).0, "Now I know.");
    let told = &api.messages(1)[2]["content"];
    let texts: Vec<&str> = (0..3)
        .map(|at| told[at]["content"].as_str().unwrap())
        .collect();
    assert!(texts[0].contains("did you mean `look`"), "{}", texts[0]);
    assert!(texts[1].contains("- /at: "), "{}", texts[1]);
    // It is a tool of the file, but not of the agent.
    assert!(texts[2].starts_with("Unknown tool"), "{}", texts[2]);
    assert_eq!(ran.file("written"), None);
    let log = ran.log();
    let end = log
        .iter()
        .find(|record| record["metadata"]["agent_name"] == "expert");
    let used = &end.unwrap()["metadata"];
    assert_eq!(
        [
            &used["turns_used"],
            &used["tool_calls_made"],
            &used["corrections"],
            &used["tokens_used"]
        ],
        [&json!(3), &json!(4), &json!(3), &json!(3 * 116)]
    );
    assert_eq!(
        used["usage"],
        json!({"model-1-20260101": {"input": 300, "output": 30, "cache_read": 15, "cache_write": 3}})
    );
}

#[test]
fn duplicate_ids_in_an_answer_run_none_of_them() {
    let mut twice = crate::api::uses(&[
        ("write", json!({"what": "x"})),
        ("write", json!({"what": "y"})),
    ]);
    twice[1]["id"] = "a0".into();
    let api = Api::new(&[ok(message(json!(twice), "tool_use")), text("ok")]);
    let ran = ask(&api, "      tools: [write]").exits(0);
    assert_eq!(ran.file("written"), None);
    assert_eq!(api.messages(1)[2]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn an_answer_is_capped_like_any_output() {
    let api = Api::new(&[text(&"long ".repeat(1000))]);
    let file =
        crate::scenes::tools("").replace("effect: write\n", "effect: write\n    max_output: 100\n");
    let ran = asked(toolq(&api, "").tools(&file)).exits(0);
    assert!(
        result(&ran).0.contains("4,900 bytes cut"),
        "{}",
        result(&ran).0
    );
}

/// What is safe runs beside others also in an agent, and in call order where it is not.
#[test]
fn an_agents_turn_has_batches() {
    let api = Api::new(&[
        calls(&[
            ("write", json!({"what": "1"})),
            ("look", json!({"at": "a"})),
            ("look", json!({"at": "b"})),
            ("write", json!({"what": "2"})),
        ]),
        text("ok"),
    ]);
    let ran = ask(&api, "      tools: [look, write]").exits(0);
    assert_eq!(ran.file("written").unwrap(), "1\n2\n");
    let events = crate::scenes::events(&ran);
    let batches = events
        .iter()
        .filter(|event| event["type"] == "batch_started" && !event["agent_tool_use_id"].is_null());
    let sizes: Vec<usize> = batches
        .map(|batch| batch["calls"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [1, 2, 1]);
}

/// The same answers as streams; one that breaks off, or ends in an error, is asked for again.
#[test]
fn answers_may_come_as_streams() {
    let events = |events: &[&str]| {
        let events = events.iter().map(|data| format!("data: {data}\n\n"));
        let body = events.collect::<Vec<_>>().concat();
        Act::Say(200, "content-type: text/event-stream\r\n", body)
    };
    let start = r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}"#;
    let asks = events(&[
        start,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a0","name":"look","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"at\":\"home\"}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let api = Api::new(&[
        events(&[start]),
        asks,
        events(&[start, overloaded]),
        events(&[
            start,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"It is so."}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
            r#"{"type":"message_stop"}"#,
        ]),
    ]);
    let keys = "      tools: [look]\n      stream: true\n    retry: {backoff: 1ms}";
    let ran = ask(&api, keys).exits(0);
    assert_eq!(result(&ran), ("It is so.".to_owned(), false));
    assert_eq!(api.heard()[0].body["stream"], true);
    assert_eq!(api.messages(3)[2]["content"][0]["content"], "seen home");
}
