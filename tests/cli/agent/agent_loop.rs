//! The agent loop: request, tool calls, results, answer.

use serde_json::json;

use crate::agent::expert_fixture::{run_expert, run_expert_in, single_result, toolq};
use crate::support::scripted_api::{
    ScriptedApi, calls_response, message_body, ok_response, text_response,
};

#[test]
fn an_agent_calls_tools_and_answers() {
    let api = ScriptedApi::new(&[
        calls_response(&[("look", json!({"at": "home"})), ("fail", json!({}))]),
        text_response("It is so."),
    ]);
    let keys = "      system: Be brief.\n      tools: [look, fail]\n      max_tokens: 77";
    let ran = run_expert(&api, keys).assert_exit(0);
    assert_eq!(single_result(&ran), ("It is so.".to_owned(), false));
    let requests = api.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].head.starts_with("POST /v1/messages "));
    assert!(
        requests[0]
            .head
            .contains("anthropic-version: 2023-06-01\r\n")
    );
    let first = &requests[0].body;
    assert_eq!(
        [
            &first["model"],
            &first["system"][0]["text"],
            &first["max_tokens"]
        ],
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
    assert_eq!(requests[1].body["tools"], first["tools"]);
}

/// System prompt, tools and conversation are marked in every request, and nothing else is.
#[test]
fn requests_mark_what_the_api_is_to_cache() {
    for (keys, marks) in [("", 3), ("      cache: false\n", 0)] {
        let api = ScriptedApi::new(&[
            calls_response(&[("look", json!({"at": "x"})), ("look", json!({"at": "y"}))]),
            text_response("ok"),
        ]);
        let keys = format!("{keys}      system: Be brief.\n      tools: [look, fail]");
        run_expert(&api, &keys).assert_exit(0);
        for request in api.requests() {
            let body = request.body;
            let found = body.to_string().matches("cache_control").count();
            assert_eq!(found, marks, "{body}");
            let last_message = body["messages"].as_array().unwrap().last().unwrap();
            let ephemeral = json!({"type": "ephemeral"});
            for marked in [
                &body["system"][0],
                &body["tools"][1],
                last_message["content"]
                    .as_array()
                    .map_or(&json!({}), |blocks| blocks.last().unwrap()),
            ] {
                assert_eq!(marked["cache_control"] == ephemeral, marks > 0, "{marked}");
            }
        }
    }
}

#[test]
fn settings_of_the_model_and_headers_are_sent() {
    let api = ScriptedApi::new(&[text_response("You sent s3cret-header.")]);
    let keys = r#"      headers: {anthropic-beta: a-beta, X-Team: "${TEAM}"}
      extra_body: {temperature: 0.5, thinking: {type: enabled, budget_tokens: 2000}, metadata: {user_id: me}}"#;
    let ran = run_expert_in(toolq(&api, keys).env("TEAM", "s3cret-header")).assert_exit(0);
    assert_eq!(single_result(&ran).0, "You sent [masked].");
    let request = &api.requests()[0];
    assert!(
        request.head.contains("anthropic-beta: a-beta\r\n"),
        "{}",
        request.head
    );
    assert!(
        request.head.contains("x-team: s3cret-header\r\n"),
        "{}",
        request.head
    );
    let body = &request.body;
    assert_eq!(body["temperature"], 0.5);
    assert_eq!(body["thinking"]["budget_tokens"], 2000);
    assert_eq!(body["metadata"]["user_id"], "me");
}

/// Each text block is a line of the answer.
#[test]
fn text_blocks_are_not_glued_together() {
    let blocks = json!([{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]);
    let api = ScriptedApi::new(&[ok_response(message_body(blocks, "end_turn"))]);
    assert_eq!(single_result(&run_expert(&api, "")).0, "One.\nTwo.");
}

#[test]
fn the_note_of_an_unfinished_agent_can_be_worded() {
    let script = || ScriptedApi::new(&[calls_response(&[("look", json!({"at": "x"}))])]);
    let keys = "      tools: [look]\n      max_turns: 1";
    let (text, is_error) = single_result(&run_expert(&script(), keys).assert_exit(0));
    assert!(
        !is_error
            && text.ends_with(
                "(The agent did not finish within its only turn; this is its last message.)"
            ),
        "{text}"
    );
    let messages = "    messages: {max_turns: \"{tool}: {error}!\"}\n    agent:\n";
    let file =
        crate::agent::expert_fixture::expert_tools(keys).replacen("    agent:\n", messages, 1);
    let (text, _) = single_result(&run_expert_in(toolq(&script(), "").tools(&file)));
    assert!(
        text.ends_with("\nexpert: the agent did not finish within its only turn!"),
        "{text}"
    );
}

#[test]
fn a_prompt_is_filled_from_the_input_and_the_environment() {
    let api = ScriptedApi::new(&[text_response("ok")]);
    let keys = "      prompt: \"As ${WHO:-default}: {query}\"";
    run_expert_in(toolq(&api, keys).env("WHO", "{query}")).assert_exit(0);
    assert_eq!(api.messages(0)[0]["content"], "As {query}: why?");
    assert_eq!(api.requests()[0].body.get("tools"), None);
}

/// Rejected calls go back to the model, which can correct itself. The log counts them.
#[test]
fn rejected_calls_go_back_to_the_model() {
    let api = ScriptedApi::new(&[
        calls_response(&[
            ("lok", json!({})),
            ("look", json!({"at": 3})),
            ("write", json!({"what": "x"})),
        ]),
        calls_response(&[("look", json!({"at": "home"}))]),
        text_response("Now I know."),
    ]);
    let ran = run_expert(&api, "      tools: [look]").assert_exit(0);
    assert_eq!(single_result(&ran).0, "Now I know.");
    let results = &api.messages(1)[2]["content"];
    let texts: Vec<&str> = (0..3)
        .map(|at| results[at]["content"].as_str().unwrap())
        .collect();
    assert!(texts[0].contains("did you mean `look`"), "{}", texts[0]);
    assert!(texts[1].contains("- /at: "), "{}", texts[1]);
    // `write` is a tool of the file, but not of the agent.
    assert!(texts[2].starts_with("Unknown tool"), "{}", texts[2]);
    assert_eq!(ran.file("written"), None);
    let log = ran.log_records();
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
fn calls_that_share_an_id_are_calls_of_their_own() {
    let mut twice = crate::support::scripted_api::tool_use_blocks(&[
        ("write", json!({"what": "x"})),
        ("write", json!({"what": "y"})),
    ]);
    twice[1]["id"] = "a0".into();
    let api = ScriptedApi::new(&[
        ok_response(message_body(json!(twice), "tool_use")),
        text_response("ok"),
    ]);
    let ran = run_expert(&api, "      tools: [write]").assert_exit(0);
    assert_eq!(ran.file("written").unwrap(), "x\ny\n");
    assert_eq!(api.messages(1)[2]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn an_answer_is_capped_like_any_output() {
    let api = ScriptedApi::new(&[text_response(&"long ".repeat(1000))]);
    let file = crate::agent::expert_fixture::expert_tools("")
        .replace("effect: write\n", "effect: write\n    max_output: 100\n");
    let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
    assert!(
        single_result(&ran).0.contains("4,900 bytes cut"),
        "{}",
        single_result(&ran).0
    );
}

/// Within an agent, too, safe calls run in parallel and unsafe ones alone, in call order.
#[test]
fn an_agents_calls_run_in_batches() {
    let api = ScriptedApi::new(&[
        calls_response(&[
            ("write", json!({"what": "1"})),
            ("look", json!({"at": "a"})),
            ("look", json!({"at": "b"})),
            ("write", json!({"what": "2"})),
        ]),
        text_response("ok"),
    ]);
    let ran = run_expert(&api, "      tools: [look, write]").assert_exit(0);
    assert_eq!(ran.file("written").unwrap(), "1\n2\n");
    let events = crate::agent::expert_fixture::read_events(&ran);
    let batches = events
        .iter()
        .filter(|event| event["type"] == "batch_started" && !event["agent_tool_use_id"].is_null());
    let sizes: Vec<usize> = batches
        .map(|batch| batch["calls"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [1, 2, 1]);
}
