//! Streams that are aborted or truncated by a token limit.

use super::interactive_run::{InteractiveRun, TOOLS};
use crate::support::vendor_messages::{
    Vendor, call_block, message_end, message_start, open_call_block, sse_event,
};
use crate::support::{CliSandbox, full_or_short};
use serde_json::json;

const ABORTED_MESSAGE: &str = "!Not executed: the response that contains this call broke off.";
const ABORTED_IN_CALL_MESSAGE: &str =
    "!Not executed: the response broke off in the middle of this call.";

/// Calls that are still waiting aren't executed.
#[test]
fn calls_that_ran_keep_their_results_after_an_abort() {
    let mut run = InteractiveRun::start(&["run"]);
    run.send(
        &(message_start()
            + &call_block(0, ("a", "look", r#"{"name":"1"}"#))
            + &call_block(1, ("b", "wait", r#"{"name":"2"}"#))),
    );
    run.wait_for_file("look.1");
    run.wait_for_file("wait.2");
    run.send(
        &(call_block(2, ("c", "change", r#"{"name":"3"}"#))
            + &call_block(3, ("d", "look", r#"{"name":"4"}"#))),
    );
    run.send(&open_call_block(4, ("e", "look", r#"{"name":"5"}"#), 4));
    // A running call isn't interrupted.
    run.create_file("2.go");
    let output = run.close_and_wait().assert_exit(3);
    assert_eq!(
        output.result_lines(),
        [
            "a saw 1".to_owned(),
            "b waited for 2".to_owned(),
            format!("c {ABORTED_MESSAGE}"),
            format!("d {ABORTED_MESSAGE}"),
            format!("e {ABORTED_IN_CALL_MESSAGE}")
        ]
    );
    assert!(
        !output.has_file("change.3") && !output.has_file("look.4") && !output.has_file("look.5")
    );
    assert!(
        output
            .stderr
            .contains("the stream ends in the middle of a message"),
        "{}",
        output.stderr
    );
}

/// The API may report an error after its status 200. Nothing after it is read.
#[test]
fn an_error_ends_the_stream() {
    let mut run = InteractiveRun::start(&["run", "--log", "log.jsonl"]);
    run.send(
        &(message_start()
            + &call_block(0, ("a", "look", r#"{"name":"1"}"#))
            + &call_block(1, ("b", "change", r#"{"name":"2"}"#))),
    );
    run.wait_for_file("look.1");
    run.send(&sse_event(
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ));
    run.send(&message_end("tool_use"));
    let output = run.close_and_wait().assert_exit(3);
    assert_eq!(
        output.result_lines(),
        ["a saw 1".to_owned(), format!("b {ABORTED_MESSAGE}")]
    );
    assert!(
        output
            .stderr
            .contains("an error (overloaded_error: Overloaded)"),
        "{}",
        output.stderr
    );
    assert!(!output.has_file("change.2"));
    // The call is skipped, so a later run may start it.
    let log = output.read_json_lines("log.jsonl");
    let kinds: Vec<&str> = log
        .iter()
        .filter_map(|record| record["type"].as_str())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "tool_skipped").count(),
        1,
        "{kinds:?}"
    );
}

/// Once the message has begun, it is a stream that ended early.
#[test]
fn an_error_before_any_call_is_an_input_error() {
    let error = sse_event(
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    );
    let run = |text: String| CliSandbox::new().tools(TOOLS).stdin(text).run(&["run"]);
    run(error.clone()).assert_exit(2);
    run(message_start() + &error).assert_exit(3);
    run("data: ".to_owned()).assert_exit(2);
    run("data: {}".to_owned()).assert_exit(2);
}

/// It may be incomplete. Those before it run, in every dialect, and in a document as in a stream.
#[test]
fn the_last_call_before_the_token_limit_is_not_executed() {
    let calls = [
        ("a", "change", r#"{"name":"1"}"#),
        ("b", "change", r#"{"name":"2"}"#),
    ];
    for vendor in Vendor::ALL {
        let document = vendor.document(&calls, true).to_string();
        for text in [vendor.events(&calls, true).concat(), document] {
            let ran = CliSandbox::new()
                .tools(TOOLS)
                .stdin(text)
                .run(&["run", "--to", "block-lines"])
                .assert_exit(0);
            let changed = ["change.1", "change.2"].map(|name| ran.file(name).is_some());
            assert_eq!(changed, [true, false], "{vendor:?}: {}", ran.stdout);
            let refused = "Not executed: the response hit its token limit";
            assert!(
                ran.lines()[1].to_string().contains(refused),
                "{}",
                ran.stdout
            );
        }
    }
}

/// A call that changes something waits for the end of the message, and that says that the message was refused.
#[test]
fn a_refused_stream_changes_nothing() {
    let chat = |reason: &str| {
        let chunk = json!({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "change", "arguments": "{\"name\":\"1\"}"}}]}}]});
        let end =
            json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        sse_event(&chunk) + &sse_event(&end)
    };
    let anthropic = |reason: &str| {
        message_start() + &call_block(0, ("a", "change", r#"{"name":"1"}"#)) + &message_end(reason)
    };
    for (stream, refused) in [
        (anthropic("refusal"), true),
        (anthropic("tool_use"), false),
        (chat("content_filter"), true),
        (chat("tool_calls"), false),
    ] {
        let mut run = InteractiveRun::start(&["run", "--to", "message"]);
        run.send(&stream);
        let output = run.close_and_wait().assert_exit(0);
        assert_eq!(output.has_file("change.1"), !refused, "{stream}");
        let expected = if refused {
            "a !Not executed: "
        } else {
            "a changed 1"
        };
        let results = output.result_lines();
        assert!(results[0].starts_with(expected), "{results:?}");
    }
}

/// A call that had started before the truncation was noticed keeps its result.
#[test]
fn a_started_call_survives_truncation() {
    let mut run = InteractiveRun::start(&["run"]);
    run.send(&(message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#))));
    run.wait_for_file("look.1");
    run.send(&message_end("max_tokens"));
    assert_eq!(
        run.close_and_wait().assert_exit(0).result_lines(),
        ["a saw 1"]
    );
}

/// Cuts streams after and within every event before the reason to stop, with which a message is whole. Every call that was seen gets a result,
/// and no write runs.
#[test]
fn every_call_gets_a_result_wherever_a_stream_is_cut() {
    for vendor in Vendor::ALL {
        let calls = [
            ("a", "look", r#"{"name":"1"}"#),
            ("b", "change", r#"{"name":"2"}"#),
            ("c", "look", r#"{"name":"3"}"#),
        ];
        let events = vendor.events(&calls, false);
        let reasons = [
            r#""stop_reason":"tool_use""#,
            r#""finish_reason":"tool_calls""#,
            r#""response.completed""#,
        ];
        let last = events
            .iter()
            .position(|event| reasons.iter().any(|reason| event.contains(reason)))
            .unwrap();
        for cut in (1..=last).step_by(full_or_short(1, 3)) {
            let half = events[cut].len() / 2;
            let text = events[..cut].concat()
                + if cut % 2 == 0 {
                    ""
                } else {
                    &events[cut][..half]
                };
            let seen = ["\"a\"", "\"b\"", "\"c\""]
                .iter()
                .filter(|id| events[..cut].concat().contains(**id))
                .count();
            let ran = CliSandbox::new()
                .tools(TOOLS)
                .stdin(text)
                .run(&["run", "--to", "block-lines", "--message", "message.json"])
                .assert_exit(3);
            assert_eq!(ran.lines().len(), seen, "{vendor:?} {cut}: {}", ran.stdout);
            // What goes back has the calls that the results answer.
            let message = ran.file("message.json").unwrap_or_default();
            let in_message = ["\"a\"", "\"b\"", "\"c\""].map(|id| message.contains(id));
            let sent = in_message.iter().filter(|is_there| **is_there).count();
            assert_eq!(sent, seen, "{vendor:?} {cut}: {message}");
            assert_eq!(message.lines().count(), usize::from(seen > 0), "{message}");
            assert!(ran.file("change.2").is_none(), "{vendor:?} {cut}");
            assert!(ran.stderr.contains("ends in the middle"), "{}", ran.stderr);
        }
    }
}

#[test]
fn every_aborted_input_is_reported() {
    let aborted = |id: &str| message_start() + &call_block(0, (id, "look", r#"{"name":"1"}"#));
    for command in ["run", "plan"] {
        let ran = CliSandbox::new()
            .tools(TOOLS)
            .file("one.sse", aborted("a"))
            .file("two.sse", aborted("b"))
            .run(&[command, "one.sse", "two.sse"])
            .assert_exit(3);
        for name in ["one.sse", "two.sse"] {
            let prefix = format!("error: {name}:");
            assert_eq!(ran.stderr.matches(&prefix).count(), 1, "{}", ran.stderr);
        }
    }
}
