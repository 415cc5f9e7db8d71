//! Agents that use the OpenAI chat completions API.

use serde_json::{Value, json};

use crate::agent::expert_fixture::{CANARY, read_events, run_expert, single_result};
use crate::support::CliOutput;
use crate::support::scripted_api::{ApiBehavior, ScriptedApi, chat_response, ok_response};

const CHAT_AGENT_KEYS: &str =
    "      api: openai-chat\n      system: Be brief.\n      tools: [look]";

#[test]
fn a_conversation_in_chat_completions() {
    let tool_calls_message = json!({"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": \"home\"}"}},
        {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{"}}
    ]});
    let done = json!({"role": "assistant", "content": "It is so."});
    let api = ScriptedApi::new(&[
        chat_response(tool_calls_message.clone(), "tool_calls"),
        chat_response(done, "stop"),
    ]);
    let ran = run_expert(&api, CHAT_AGENT_KEYS).assert_exit(0);
    assert_eq!(single_result(&ran), ("It is so.".to_owned(), false));
    let requests = api.requests();
    assert!(requests[0].head.starts_with("POST /v1/chat/completions "));
    assert!(
        requests[0]
            .head
            .contains(&format!("authorization: Bearer {CANARY}\r\n"))
    );
    assert_eq!(requests[0].body["max_tokens"], 4096);
    assert_eq!(requests[0].body["tools"][0]["function"]["name"], "look");
    let messages = api.messages(1);
    assert_eq!(
        messages[0],
        json!({"role": "system", "content": "Be brief."})
    );
    assert_eq!(messages[1]["role"], "user");
    assert_eq!(
        messages[2],
        json!({"role": "assistant", "content": null, "tool_calls": tool_calls_message["tool_calls"]})
    );
    assert_eq!(
        messages[3],
        json!({"role": "tool", "tool_call_id": "c1", "content": "seen home"})
    );
    assert_eq!(messages[4]["tool_call_id"], "c2");
    assert!(
        messages[4]["content"]
            .as_str()
            .unwrap()
            .starts_with("Invalid input for look")
    );
    let log = ran.log_records();
    let end = log
        .iter()
        .find(|record| record["metadata"]["agent_name"] == "expert");
    assert_eq!(
        end.unwrap()["metadata"]["usage"],
        json!({"gpt-1": {"input": 60, "output": 14, "cache_read": 40, "cache_write": 0}})
    );
}

/// A finish reason that toolq doesn't know counts as success, and is reported in an event and in the log.
#[test]
fn an_unknown_finish_reason_is_a_normal_end() {
    let message = json!({"role": "assistant", "content": "It is so."});
    let ran = run_expert(
        &ScriptedApi::new(&[chat_response(message.clone(), "banana")]),
        CHAT_AGENT_KEYS,
    )
    .assert_exit(0);
    assert_eq!(single_result(&ran), ("It is so.".to_owned(), false));
    let tip = read_events(&ran)
        .into_iter()
        .find(|event| event["type"] == "tool_status");
    assert!(
        tip.unwrap()
            .to_string()
            .contains("unknown stop reason banana")
    );
    let unknown = |ran: &CliOutput| {
        let log = ran.log_records();
        let answer = log.iter().find(|record| record["type"] == "model_response");
        answer.unwrap()["metadata"]["unknown_stop"].clone()
    };
    assert_eq!(unknown(&ran), "banana");
    let ran = run_expert(
        &ScriptedApi::new(&[chat_response(message, "stop")]),
        CHAT_AGENT_KEYS,
    )
    .assert_exit(0);
    assert_eq!(unknown(&ran), Value::Null);
}

#[test]
fn finish_reasons_and_api_errors_are_reported() {
    let assistant_message = |content: &str| json!({"role": "assistant", "content": content});
    let refusal = json!({"role": "assistant", "content": null, "refusal": "I can't."});
    let invalid = json!({"error": {"message": "no such model", "type": "invalid_request_error", "code": null}});
    for (behavior, expected) in [
        (
            chat_response(assistant_message("So far"), "length"),
            "token limit",
        ),
        (
            chat_response(assistant_message(""), "content_filter"),
            "declined",
        ),
        (chat_response(refusal, "stop"), "I can't."),
        (
            ApiBehavior::Respond(404, "", invalid.to_string()),
            "HTTP 404: no such model (invalid_request_error)",
        ),
        (ok_response(json!({"choices": []})), "it has no `choices`"),
    ] {
        let api = ScriptedApi::new(&[behavior]);
        let (result_text, is_error) =
            single_result(&run_expert(&api, CHAT_AGENT_KEYS).assert_exit(0));
        assert!(is_error && result_text.contains(expected), "{result_text}");
    }
}
