//! The loop: asked, called, sent back, answered.

use serde_json::json;

use crate::api::{Api, calls, text};
use crate::scenes::{ask, result};

#[test]
fn an_agent_calls_and_answers() {
    let api = Api::new(&[calls(&[("look", json!({"at": "home"}))]), text("It is so.")]);
    let ran = ask(&api, "      system: Be brief.\n      tools: [look]").exits(0);
    assert_eq!(result(&ran), ("It is so.".to_owned(), false));
    let heard = api.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].body["system"], "Be brief.");
    let results = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a0", "content": "seen home", "is_error": false}
    ]});
    assert_eq!(api.messages(1)[2], results);
}
