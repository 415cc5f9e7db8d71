//! When the calls of a stream start.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::interactive_run::{InteractiveRun, TOOLS};
use crate::support::CliSandbox;
use crate::support::vendor_messages::{
    Vendor, block_stop, call_block, message_end, message_start, open_call_block, sse_event,
};

/// Read-only and idempotent calls run while the message is still arriving. Writes, and all calls after them, wait until
/// it is complete.
#[test]
fn reads_run_at_once_and_writes_at_the_end() {
    let mut run = InteractiveRun::start(&["run"]);
    run.send(&(message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#))));
    run.wait_for_file("look.1");
    run.send(&call_block(1, ("b", "renew", r#"{"name":"2"}"#)));
    run.wait_for_file("renew.2");
    run.send(
        &(call_block(2, ("c", "change", r#"{"name":"3"}"#))
            + &call_block(3, ("d", "look", r#"{"name":"4"}"#))),
    );
    // More input, so that toolq has probably read the calls above.
    run.send(&open_call_block(4, ("e", "look", r#"{"name":"5"}"#), 3));
    assert!(!run.has_file("change.3") && !run.has_file("look.4"));
    run.send(&(block_stop(4) + &message_end("tool_use")));
    let output = run.close_and_wait().assert_exit(0);
    assert_eq!(
        output.result_lines(),
        [
            "a saw 1",
            "b renewed 2",
            "c changed 3",
            "d saw 4",
            "e saw 5"
        ]
    );
}

/// A tool that is declared concurrency-safe may still have effects, so it waits for the end of the message.
#[test]
fn a_safe_tool_that_is_not_read_only_starts_at_the_end() {
    let tools = TOOLS.replacen("  change:\n", "  change:\n    concurrency_safe: true\n", 1);
    assert_ne!(tools, TOOLS);
    let toolq = CliSandbox::new().tools(&tools);
    let mut run = InteractiveRun::start_in(toolq, &["run"]);
    run.send(
        &(message_start()
            + &call_block(0, ("a", "look", r#"{"name":"1"}"#))
            + &call_block(1, ("b", "change", r#"{"name":"2"}"#))),
    );
    run.wait_for_file("look.1");
    run.send(&open_call_block(2, ("c", "look", r#"{"name":"3"}"#), 3));
    assert!(!run.has_file("change.2"));
    run.send(&(block_stop(2) + &message_end("tool_use")));
    let output = run.close_and_wait().assert_exit(0);
    assert!(output.has_file("change.2"));
}

/// The results are printed when the message and its calls are complete, even if the stream continues.
#[test]
fn results_wait_only_for_their_own_message() {
    let mut run = InteractiveRun::start(&["run"]);
    for name in ["one", "two"] {
        let input = json!({"name": name}).to_string();
        run.send(
            &(message_start() + &call_block(0, ("a", "change", &input)) + &message_end("tool_use")),
        );
        let message: Value = serde_json::from_str(&run.next_line()).unwrap();
        assert_eq!(message["content"][0]["content"], format!("changed {name}"));
    }
    run.close_and_wait().assert_exit(0);
}

/// The same for both streaming formats of OpenAI. The results have the form of the input.
#[test]
fn openai_streams_get_results_in_their_form() {
    for (vendor, id) in [
        (Vendor::Chat, "tool_call_id"),
        (Vendor::Responses, "call_id"),
    ] {
        let calls = [
            ("a", "look", r#"{"name":"1"}"#),
            ("b", "change", r#"{"name":"2"}"#),
        ];
        let events = vendor.events(&calls, false);
        let first = events
            .iter()
            .position(|event| event.contains("change"))
            .unwrap();
        let mut run = InteractiveRun::start(&["run", "--from", "openai-sse"]);
        run.send(&events[..=first].concat());
        run.wait_for_file("look.1");
        run.send(&events[first + 1..events.len() - 3].concat());
        assert!(!run.has_file("change.2"));
        run.send(&events[events.len() - 3..].concat());
        let output = run.close_and_wait().assert_exit(0);
        let results: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!([&results[0][id], &results[1][id]], ["a", "b"]);
    }
}

/// An input that isn't a stream is read completely before anything runs.
#[test]
fn a_document_is_read_to_its_end() {
    let call_text = r#"{"type":"tool_use","id":"a","name":"look","input":{"name":"1"}}"#;
    let mut run = InteractiveRun::start(&["run"]);
    run.send(&format!("{call_text}\n{call_text}\n"));
    run.send("not json");
    let output = run.close_and_wait().assert_exit(2);
    assert!(!output.has_file("look.1"));
    assert!(output.stderr.contains("stdin:3:"), "{}", output.stderr);
}

/// A stream without calls creates no log.
#[test]
fn a_stream_without_calls_is_exit_5() {
    let mut run = InteractiveRun::start(&["run"]);
    run.send(&(message_start() + &message_end("end_turn")));
    let output = run.close_and_wait().assert_exit(5);
    assert_eq!(output.stdout, "");
    assert!(!output.has_file("state"));
}

/// A call that had started before keeps its result.
#[test]
fn a_piece_that_does_not_fit_revokes_calls_that_have_not_started() {
    let mut run = InteractiveRun::start(&["run", "-j", "1"]);
    run.send(
        &(message_start()
            + &call_block(0, ("a", "wait", r#"{"name":"1"}"#))
            + &call_block(1, ("b", "look", r#"{"name":"2"}"#))),
    );
    run.wait_for_file("wait.1");
    run.send(
        &(call_block(2, ("c", "look", r#"{"name":"3"}"#))
            + &sse_event(&json!({
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": "{}"}
            }))
            + &call_block(3, ("d", "look", r#"{"name":"4"}"#))
            + &message_end("tool_use")),
    );
    run.wait_until_read();
    run.create_file("1.go");
    let output = run.close_and_wait().assert_exit(3);
    let message = "!Not executed: the response with this call didn't arrive whole.";
    let revoked = |id: &str| format!("{id} {message}");
    assert_eq!(
        output.result_lines(),
        [
            "a waited for 1".to_owned(),
            revoked("b"),
            revoked("c"),
            revoked("d")
        ]
    );
    let why =
        "the call of `look` and those after it don't run: more of its input arrives after its end";
    assert!(output.stderr.contains(why), "{}", output.stderr);
    assert!(!output.has_file("look.2") && !output.has_file("look.3") && !output.has_file("look.4"));
}

/// Every call that was seen gets a result.
#[test]
fn a_signal_ends_a_run_whose_stream_is_open() {
    let mut run = InteractiveRun::start(&["run", "--log", "log.jsonl"]);
    run.send(
        &(message_start()
            + &call_block(0, ("a", "wait", r#"{"name":"1"}"#))
            + &call_block(1, ("b", "change", r#"{"name":"2"}"#))),
    );
    run.send(&open_call_block(2, ("c", "look", r#"{"name":"3"}"#), 4));
    run.wait_for_file("wait.1");
    run.signal(Signal::TERM);
    let output = run.wait().assert_exit(143);
    let results = output.result_lines();
    assert!(
        results[0].starts_with("a !Interrupted while running"),
        "{results:?}"
    );
    assert!(
        results[1].starts_with("b !Not executed: the run was stopped"),
        "{results:?}"
    );
    // The last call may not have been read yet.
    assert!(
        results
            .get(2)
            .is_none_or(|last| last.starts_with("c !Not executed")),
        "{results:?}"
    );
    let log = output.read_json_lines("log.jsonl");
    assert_eq!(log.last().unwrap()["type"], "session_end");
}

/// A stream that is always ready and never ends doesn't keep calls from running or signals from being handled.
#[test]
fn an_endless_stream_blocks_no_call() {
    let stream = message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#));
    let toolq = CliSandbox::new().tools(TOOLS).file("begin", stream);
    let script = r#"
        mkfifo flood
        { cat begin; yes 'data: {"type":"ping"}

        '; } > flood 2> /dev/null & flood=$!
        "$TOOLQ" run -q < flood & toolq=$!
        until [ -e look.1 ]; do sleep 0.02; done
        kill -TERM $toolq
        wait $toolq; echo "exit $?"
        kill $flood 2> /dev/null
    "#;
    let ran = toolq.run_shell(script);
    assert!(
        ran.stdout.ends_with("exit 143\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// The budget applies to the whole input. Calls that arrive later still get a result.
#[test]
fn calls_after_an_exhausted_budget_get_results() {
    let mut run = InteractiveRun::start(&["run", "--max-calls", "1"]);
    run.send(&(message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#))));
    run.wait_for_file("look.1");
    run.send(&(call_block(1, ("b", "look", r#"{"name":"2"}"#)) + &message_end("tool_use")));
    run.send(
        &(message_start()
            + &call_block(0, ("c", "look", r#"{"name":"3"}"#))
            + &message_end("tool_use")),
    );
    let output = run.close_and_wait().assert_exit(3);
    assert!(
        output
            .stdout
            .lines()
            .nth(1)
            .unwrap()
            .contains("1 call is used up"),
        "{}",
        output.stdout
    );
    assert!(!output.has_file("look.2") && !output.has_file("look.3"));
}

/// The results are in the order of the inputs, each in the form of its input.
#[test]
fn streams_and_documents_can_be_mixed() {
    let input = r#"{"name":"1"}"#;
    let toolq = CliSandbox::new().tools(TOOLS).file(
        "one.sse",
        Vendor::Anthropic
            .events(&[("a", "look", input)], false)
            .concat(),
    );
    let toolq = toolq.file(
        "two.json",
        r#"[{"type":"tool_use","id":"b","name":"look","input":{"name":"2"}}]"#,
    );
    let ran = toolq.stdin(Vendor::Chat.events(&[("c", "look", input)], false).concat());
    let ran = ran.run(&["run", "one.sse", "two.json", "-"]).assert_exit(0);
    let ids: Vec<Value> = ran
        .lines()
        .iter()
        .map(|line| {
            let of_message = &line["content"][0]["tool_use_id"];
            let of_block = &line[0]["tool_use_id"];
            [of_message, of_block, &line[0]["tool_call_id"]]
                .into_iter()
                .find(|id| id.is_string())
                .unwrap()
                .clone()
        })
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let turns = ran
        .log_records()
        .into_iter()
        .filter(|record| record["type"] == "turn");
    let turns: Vec<Value> = turns
        .map(|record| record["metadata"]["turn"].clone())
        .collect();
    assert_eq!(turns, [0, 1, 2]);
}

/// The SSE standard allows a byte order mark, other line endings, and comments.
#[test]
fn a_stream_is_recognized_by_its_first_line() {
    let text = message_start()
        + &call_block(0, ("a", "look", r#"{"name":"1"}"#))
        + &message_end("tool_use");
    for text in [
        format!("\u{FEFF}{text}"),
        format!(": OPENROUTER PROCESSING\n\n{}", text.replace('\n', "\r\n")),
        text.trim_end().replace('\n', "\r"),
        text.replace("data: ", "data:"),
    ] {
        let ran = CliSandbox::new()
            .tools(TOOLS)
            .stdin(&text)
            .run(&["run"])
            .assert_exit(0);
        assert_eq!(ran.result_texts(), [("saw 1".to_owned(), false)]);
    }
    let unrecognized = sse_event(&json!({"jsonrpc": "2.0"}));
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .stdin(unrecognized)
        .run(&["run"])
        .assert_exit(2);
    assert!(
        ran.stderr
            .contains("stdin:2:7: an object with the keys `jsonrpc`"),
        "{}",
        ran.stderr
    );
}
