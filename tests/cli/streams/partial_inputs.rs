//! Events of a call while its input is still arriving.

use serde_json::{Value, json};

use super::interactive_run::{InteractiveRun, TOOLS};
use crate::support::CliSandbox;
use crate::support::vendor_messages::{block_stop, message_end, message_start, open_call_block};

/// Returns the type, state and params of each event of a call.
fn call_event_states(events: &[Value], id: &str) -> Vec<(String, String, Value)> {
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
    let mut run = InteractiveRun::start(&["run", "--events", "events.ndjson"]);
    run.send(&(message_start() + &open_call_block(0, ("a", "look", r#"{"name":"one"}"#), 5)));
    // Each part is emitted when it arrives, not when the call is complete.
    run.wait_for_text("events.ndjson", |text| text.contains(r#"{"name":"one"}"#));
    run.send(&(block_stop(0) + &message_end("tool_use")));
    let events = run
        .close_and_wait()
        .assert_exit(0)
        .read_json_lines("events.ndjson");
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
    assert_eq!(call_event_states(&events, "a"), expected);
    assert_eq!(events[0]["position"], 0);
    assert_eq!(events[0]["tool_name"], "look");
}

/// The tip is the tool's `status.wait`, with the values that have arrived.
#[test]
fn a_partial_input_has_the_tip_of_a_waiting_call() {
    let tools = "tools: {look: {input_schema: {type: object}, status: {wait: 'about to see {name}'}, command: [echo]}}";
    let text = message_start()
        + &open_call_block(0, ("a", "look", r#"{"name":"one"}"#), 5)
        + &block_stop(0)
        + &message_end("tool_use");
    let ran = CliSandbox::new()
        .tools(tools)
        .stdin(text)
        .run(&["run", "--events", "events.ndjson"])
        .assert_exit(0);
    let events = crate::support::parse_json_lines(&ran.file("events.ndjson").unwrap());
    let partial = events
        .iter()
        .filter(|event| event["type"] == "tool_partial");
    let tips: Vec<&str> = partial
        .map(|event| event["state"]["tip"].as_str().unwrap())
        .collect();
    assert_eq!(
        tips,
        ["about to see ", "about to see o", "about to see one"]
    );
}

/// No part of a secret is shown before the whole secret has arrived and can be masked.
#[test]
fn a_secret_is_not_shown_in_pieces() {
    let tools = TOOLS.replace("tools:\n", "secrets: [TOKEN]\ntools:\n");
    let toolq = CliSandbox::new().tools(&tools).env("TOKEN", "s3cr3t-value");
    let input = r#"{"name":"is s3cr3t-value \u0073\u0033cr3t-value and more"}"#;
    for length in [1, 3, 100] {
        let text = message_start()
            + &open_call_block(0, ("a", "unknown", input), length)
            + &block_stop(0)
            + &message_end("tool_use");
        let toolq = CliSandbox::new().tools(&tools).env("TOKEN", "s3cr3t-value");
        let ran = toolq
            .stdin(text)
            .run(&["run", "--events", "events.ndjson"])
            .assert_exit(0);
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

/// The size of the events doesn't grow with the number of parts in which an input arrives.
#[test]
fn partial_events_of_a_large_input_stay_small() {
    let name = "x".repeat(100_000);
    let input = json!({"name": name}).to_string();
    let text = message_start()
        + &open_call_block(0, ("a", "unknown", &input), 50)
        + &block_stop(0)
        + &message_end("tool_use");
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .stdin(text)
        .run(&["run", "--events", "events.ndjson"])
        .assert_exit(0);
    let events = ran.file("events.ndjson").unwrap();
    assert!(events.lines().count() > 20);
    assert!(events.len() < 30 * input.len(), "{}", events.len());
}
