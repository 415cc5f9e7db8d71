//! What people see of a call while its input still arrives.

use serde_json::{Value, json};

use super::support::Toolq;
use super::talk::{TOOLS, Talk};
use super::vendors::{block, end, start, stop};

/// The types of a call's events, each with its state and its params.
fn told(events: &[Value], id: &str) -> Vec<(String, String, Value)> {
    let of_call = events.iter().filter(|event| event["tool_use_id"] == id);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of_call
        .map(|event| {
            (
                text(&event["type"]),
                text(&event["state"]["state"]),
                event["state"]["params"].clone(),
            )
        })
        .collect()
}

#[test]
fn an_input_is_shown_as_it_arrives() {
    let mut talk = Talk::start(&["run", "--events", "events.ndjson"]);
    talk.say(&(start() + &block(0, ("a", "look", r#"{"name":"one"}"#), 5)));
    // Each is told when it comes, not when the call is whole.
    talk.until_text("events.ndjson", |text| text.contains(r#"{"name":"one"}"#));
    talk.say(&(stop(0) + &end("tool_use")));
    let events = talk.close().exits(0).json("events.ndjson");
    let expected = [
        ("tool_partial", "wait", json!({})),
        ("tool_partial", "wait", json!({"name": "o"})),
        ("tool_partial", "wait", json!({"name": "one"})),
        ("tool_queued", "wait", json!({"name": "one"})),
        ("tool_started", "doing", json!({"name": "one"})),
        ("tool_completed", "success", json!({"name": "one"})),
        ("result_written", "success", json!({"name": "one"})),
    ];
    let expected =
        expected.map(|(kind, state, params)| (kind.to_owned(), state.to_owned(), params));
    assert_eq!(told(&events, "a"), expected);
    assert_eq!(events[0]["position"], 0);
    assert_eq!(events[0]["tool_name"], "look");
}

/// FAULTS 131: nothing of a secret is shown before all of it is there to be masked.
#[test]
fn a_secret_is_not_shown_in_pieces() {
    let tools = TOOLS.replace("tools:\n", "secrets: [TOKEN]\ntools:\n");
    let toolq = Toolq::new().tools(&tools).env("TOKEN", "s3cr3t-value");
    let input = r#"{"name":"is s3cr3t-value \u0073\u0033cr3t-value and more"}"#;
    for length in [1, 3, 100] {
        let text =
            start() + &block(0, ("a", "unknown", input), length) + &stop(0) + &end("tool_use");
        let toolq = Toolq::new().tools(&tools).env("TOKEN", "s3cr3t-value");
        let ran = toolq
            .stdin(text)
            .run(&["run", "--events", "events.ndjson"])
            .exits(0);
        let events = ran.file("events.ndjson").unwrap();
        assert!(
            events.contains(r#"{"name":"is [masked] [masked] and more"}"#),
            "{events}"
        );
        assert!(
            !events.contains("s3") && !events.contains("u0073"),
            "{events}"
        );
    }
    drop(toolq);
}

/// FAULTS 4: what is told of a large input is no multiple of it that grows with its pieces.
#[test]
fn a_large_input_is_not_told_again_and_again() {
    let name = "x".repeat(100_000);
    let input = json!({"name": name}).to_string();
    let text = start() + &block(0, ("a", "unknown", &input), 50) + &stop(0) + &end("tool_use");
    let ran = Toolq::new()
        .tools(TOOLS)
        .stdin(text)
        .run(&["run", "--events", "events.ndjson"])
        .exits(0);
    let events = ran.file("events.ndjson").unwrap();
    assert!(events.lines().count() > 20);
    assert!(events.len() < 30 * input.len(), "{}", events.len());
}
