//! Why a model's response ended, and what the agent's caller reads then.

use serde_json::{Value, json};

use crate::agent::expert_fixture::{run_expert, single_result};
use crate::support::scripted_api::{
    ScriptedApi, calls_response, message_body, ok_response, text_response, tool_use_blocks,
};

fn text_content(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// An agent that never finishes is stopped, and says so.
#[test]
fn after_max_turns_the_last_text_is_the_result() {
    let api = ScriptedApi::new(&[calls_response(&[("write", json!({"what": "x"}))])]);
    let ran = run_expert(&api, "      tools: [write]\n      max_turns: 2").assert_exit(0);
    let (text, error) = single_result(&ran);
    assert_eq!(
        (text.as_str(), error),
        (
            "Let me see.\n(The agent did not finish within its 2 turns; this is its last message.)",
            false
        )
    );
    assert_eq!(api.requests().len(), 2);
    // The calls of the last response don't run.
    assert_eq!(ran.file("written").unwrap(), "x\n");
}

/// A model that pauses its turn has not ended it.
#[test]
fn pause_turn_continues_with_the_same_messages() {
    let content =
        json!([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]);
    let api = ScriptedApi::new(&[
        ok_response(message_body(content.clone(), "pause_turn")),
        text_response("found"),
    ]);
    let ran = run_expert(&api, "").assert_exit(0);
    assert_eq!(single_result(&ran), ("found".to_owned(), false));
    let messages = api.messages(1);
    assert_eq!(messages.len(), 2);
    assert_eq!(
        messages[1],
        json!({"role": "assistant", "content": content})
    );
    let endless = ScriptedApi::new(&[ok_response(message_body(
        text_content("wait"),
        "pause_turn",
    ))]);
    let ran = run_expert(&endless, "").assert_exit(0);
    assert!(
        single_result(&ran)
            .0
            .starts_with("wait\n(The agent did not finish within its 3 turns")
    );
    assert_eq!(endless.requests().len(), 3);
}

/// A refused or truncated response is an error that includes its text, and its calls don't run.
#[test]
fn a_truncated_or_refused_response_is_an_error_with_its_text() {
    for (reason, expected) in [
        ("refusal", "its model declined"),
        ("max_tokens", "cut off at its token limit"),
        (
            "model_context_window_exceeded",
            "outgrew its model's context window",
        ),
    ] {
        let mut content = vec![json!({"type": "text", "text": "So far."})];
        content.extend(tool_use_blocks(&[("write", json!({"what": "x"}))]));
        let api = ScriptedApi::new(&[ok_response(message_body(json!(content), reason))]);
        let ran = run_expert(&api, "      tools: [write]").assert_exit(0);
        let (text, error) = single_result(&ran);
        assert!(
            error && text.contains(expected) && text.contains("So far."),
            "{reason}: {text}"
        );
        assert_eq!(ran.file("written"), None, "{reason}");
        assert_eq!(api.requests().len(), 1);
        let log = ran.log_records();
        let end = log
            .iter()
            .find(|record| record["metadata"]["agent_name"] == "expert");
        assert_eq!(end.unwrap()["metadata"]["status"], "agent_failed");
    }
}

/// The model of the agent has nothing to say, which is no failure.
#[test]
fn an_empty_response_is_reported_as_empty() {
    let api = ScriptedApi::new(&[ok_response(message_body(json!([]), "end_turn"))]);
    let ran = run_expert(&api, "").assert_exit(0);
    assert_eq!(
        single_result(&ran),
        (
            "(The agent finished with an empty answer.)".to_owned(),
            false
        )
    );
}

#[test]
fn an_unknown_stop_reason_is_a_normal_end() {
    let api = ScriptedApi::new(&[ok_response(message_body(text_content("fine"), "because"))]);
    assert_eq!(
        single_result(&run_expert(&api, "").assert_exit(0)),
        ("fine".to_owned(), false)
    );
}
