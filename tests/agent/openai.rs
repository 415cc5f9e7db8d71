//! Chat completions.

use serde_json::{Value, json};

use crate::api::{Act, Api, completion, ok};
use crate::scenes::{CANARY, ask, events, result};
use crate::support::Ran;

const KEYS: &str = "      api: openai-chat\n      system: Be brief.\n      tools: [look]";

#[test]
fn a_conversation_in_chat_completions() {
    let asks = json!({"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": \"home\"}"}},
        {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{"}}
    ]});
    let done = json!({"role": "assistant", "content": "It is so."});
    let api = Api::new(&[
        completion(asks.clone(), "tool_calls"),
        completion(done, "stop"),
    ]);
    let ran = ask(&api, KEYS).exits(0);
    assert_eq!(result(&ran), ("It is so.".to_owned(), false));
    let heard = api.heard();
    assert!(heard[0].head.starts_with("POST /v1/chat/completions "));
    assert!(
        heard[0]
            .head
            .contains(&format!("authorization: Bearer {CANARY}\r\n"))
    );
    assert_eq!(heard[0].body["max_tokens"], 4096);
    assert_eq!(heard[0].body["tools"][0]["function"]["name"], "look");
    let messages = api.messages(1);
    assert_eq!(
        messages[0],
        json!({"role": "system", "content": "Be brief."})
    );
    assert_eq!(messages[1]["role"], "user");
    assert_eq!(
        messages[2],
        json!({"role": "assistant", "content": null, "tool_calls": asks["tool_calls"]})
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
    let log = ran.log();
    let end = log
        .iter()
        .find(|record| record["metadata"]["agent_name"] == "expert");
    assert_eq!(
        end.unwrap()["metadata"]["usage"],
        json!({"gpt-1": {"input": 60, "output": 14, "cache_read": 40, "cache_write": 0}})
    );
}

/// An end that has a name of its own is a good one, and is told.
#[test]
fn an_end_that_is_not_known() {
    let said = json!({"role": "assistant", "content": "It is so."});
    let ran = ask(&Api::new(&[completion(said.clone(), "banana")]), KEYS).exits(0);
    assert_eq!(result(&ran), ("It is so.".to_owned(), false));
    let tip = events(&ran)
        .into_iter()
        .find(|event| event["type"] == "tool_status");
    assert!(tip.unwrap().to_string().contains("ended with banana"));
    let unknown = |ran: &Ran| {
        let log = ran.log();
        let answer = log.iter().find(|record| record["type"] == "model_response");
        answer.unwrap()["metadata"]["unknown_stop"].clone()
    };
    assert_eq!(unknown(&ran), "banana");
    let ran = ask(&Api::new(&[completion(said, "stop")]), KEYS).exits(0);
    assert_eq!(unknown(&ran), Value::Null);
}

#[test]
fn its_ends_and_errors() {
    let said = |content: &str| json!({"role": "assistant", "content": content});
    let refusal = json!({"role": "assistant", "content": null, "refusal": "I can't."});
    let invalid = json!({"error": {"message": "no such model", "type": "invalid_request_error", "code": null}});
    for (act, words) in [
        (completion(said("So far"), "length"), "limit of tokens"),
        (completion(said(""), "content_filter"), "declined"),
        (completion(refusal, "stop"), "I can't."),
        (
            Act::Say(404, "", invalid.to_string()),
            "HTTP 404: no such model (invalid_request_error)",
        ),
        (ok(json!({"choices": []})), "it has no `choices`"),
    ] {
        let api = Api::new(&[act]);
        let (told, is_error) = result(&ask(&api, KEYS).exits(0));
        assert!(is_error && told.contains(words), "{told}");
    }
}
