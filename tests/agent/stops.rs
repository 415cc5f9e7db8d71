//! Why a model's answer ended, and what the caller reads then.

use serde_json::{Value, json};

use crate::api::{Api, calls, message, ok, text, uses};
use crate::scenes::{ask, result};

fn said(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn after_the_last_turn_its_words_are_the_result() {
    let api = Api::new(&[calls(&[("write", json!({"what": "x"}))])]);
    let ran = ask(&api, "      tools: [write]\n      max_turns: 2").exits(0);
    let (text, error) = result(&ran);
    assert_eq!(
        (text.as_str(), error),
        (
            "Let me see.\n(The agent was not done after its 2 turns; these are its last words.)",
            false
        )
    );
    assert_eq!(api.heard().len(), 2);
    // The calls of the last answer don't run.
    assert_eq!(ran.file("written").unwrap(), "x\n");
}

/// FAULTS 103.
#[test]
fn a_pause_goes_on_with_the_same_messages() {
    let server = json!([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]);
    let api = Api::new(&[ok(message(server.clone(), "pause_turn")), text("found")]);
    let ran = ask(&api, "").exits(0);
    assert_eq!(result(&ran), ("found".to_owned(), false));
    let messages = api.messages(1);
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1], json!({"role": "assistant", "content": server}));
    let endless = Api::new(&[ok(message(said("wait"), "pause_turn"))]);
    let ran = ask(&endless, "").exits(0);
    assert!(
        result(&ran)
            .0
            .starts_with("wait\n(The agent was not done after its 3 turns")
    );
    assert_eq!(endless.heard().len(), 3);
}

/// FAULTS 103: what was refused or cut off is an error with the text so far, and no call of it runs.
#[test]
fn a_broken_off_answer_is_an_error_with_its_text() {
    for (reason, words) in [
        ("refusal", "its model declined"),
        ("max_tokens", "cut off at its limit of tokens"),
        (
            "model_context_window_exceeded",
            "longer than its model can read",
        ),
    ] {
        let mut content = vec![json!({"type": "text", "text": "So far."})];
        content.extend(uses(&[("write", json!({"what": "x"}))]));
        let api = Api::new(&[ok(message(json!(content), reason))]);
        let ran = ask(&api, "      tools: [write]").exits(0);
        let (text, error) = result(&ran);
        assert!(
            error && text.contains(words) && text.contains("So far."),
            "{reason}: {text}"
        );
        assert_eq!(ran.file("written"), None, "{reason}");
        assert_eq!(api.heard().len(), 1);
        let log = ran.log();
        let end = log
            .iter()
            .find(|record| record["metadata"]["agent_name"] == "expert");
        assert_eq!(end.unwrap()["metadata"]["status"], "agent_failed");
    }
}

#[test]
fn an_empty_answer_is_said_to_be_one() {
    let api = Api::new(&[ok(message(json!([]), "end_turn"))]);
    let ran = ask(&api, "").exits(0);
    assert_eq!(
        result(&ran),
        (
            "(The agent is done, and its answer is empty.)".to_owned(),
            false
        )
    );
}

#[test]
fn an_unknown_reason_is_an_end() {
    let api = Api::new(&[ok(message(said("fine"), "because"))]);
    assert_eq!(result(&ask(&api, "").exits(0)), ("fine".to_owned(), false));
}
