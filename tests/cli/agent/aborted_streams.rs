//! Streamed responses that are aborted, truncated or refused after some of their calls have started.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::agent::expert_fixture::single_result;
use crate::agent::streaming_fixture::{
    call_endings, call_endings_in, chat_text_stream, send_step, streaming_agent, text_block_events,
};
use crate::support::parse_json_lines;
use crate::support::scripted_api::{ApiBehavior, StreamStep, text_response};
use crate::support::vendor_messages::{
    Vendor, call_block, message_end, message_start, open_call_block, sse_event,
};

/// Steps of a stream: a text, a call of `look` that completes while the stream is paused, a call of `change`, and the
/// beginning of another call.
fn started_call_steps(dir: &std::path::Path) -> Vec<StreamStep> {
    vec![
        send_step(
            message_start()
                + &text_block_events(0, "So far.")
                + &call_block(1, ("a", "look", r#"{"name":"1"}"#)),
        ),
        StreamStep::WaitForFile(dir.join("look.1")),
        send_step(
            call_block(2, ("b", "change", r#"{"name":"2"}"#))
                + &open_call_block(3, ("c", "look", r#"{"name":"3"}"#), 4),
        ),
    ]
}

fn overloaded_event() -> String {
    let error = json!({"type": "overloaded_error", "message": "busy"});
    sse_event(&json!({"type": "error", "error": error}))
}

/// Retrying the request could run the started calls twice, so the agent fails instead.
#[test]
fn a_stream_aborted_after_a_call_started_is_not_retried() {
    for (last, expected) in [
        (overloaded_event(), "busy"),
        ("data: {\n\n".to_owned(), "is not valid JSON"),
        (
            ": nothing\n\n".to_owned(),
            "ended before the response was complete",
        ),
    ] {
        let (toolq, api) = streaming_agent("      fallback_model: model-2\n", |dir| {
            let mut steps = started_call_steps(dir);
            steps.push(send_step(last));
            vec![ApiBehavior::Stream(steps), text_response("never requested")]
        });
        let ran = toolq.run(&["run"]).assert_exit(0);
        let (result_text, is_error) = single_result(&ran);
        assert!(is_error && result_text.contains(expected), "{result_text}");
        assert!(
            result_text
                .contains("its model's response broke off after some of its calls had started")
                && result_text.contains("So far."),
            "{result_text}"
        );
        assert_eq!(api.requests().len(), 1, "{expected}");
        let mut ends = call_endings(&ran);
        // The call that ran may have finished before or after the others got their results.
        ends.sort();
        assert_eq!(
            ends,
            [
                "change b not_executed",
                "expert toolu_0 agent_failed",
                "look a ok",
                "look c truncated"
            ]
        );
        assert_eq!([ran.file("change.2"), ran.file("look.3")], [None, None]);
        let log = ran.log_records();
        assert!(log.iter().all(|record| record["type"] != "model_response"));
    }
}

/// As long as no call has started, an aborted stream is retried like any failed request.
#[test]
fn a_stream_aborted_before_any_call_started_is_retried() {
    let (toolq, api) = streaming_agent("", |_| {
        // An invalid call never starts, and a write waits for the end of the message, as does the read after it.
        let stream = message_start()
            + &call_block(0, ("a", "unknown", "{}"))
            + &call_block(1, ("b", "change", r#"{"name":"2"}"#))
            + &call_block(2, ("c", "look", r#"{"name":"3"}"#));
        let aborted = ApiBehavior::Stream(vec![
            send_step(stream.clone()),
            send_step(overloaded_event()),
        ]);
        let whole =
            ApiBehavior::Stream(vec![send_step(stream), send_step(message_end("tool_use"))]);
        vec![aborted, whole, text_response("Done.")]
    });
    let ran = toolq.run(&["run"]).assert_exit(0);
    assert_eq!(single_result(&ran), ("Done.".to_owned(), false));
    assert_eq!(api.requests().len(), 3);
    assert_eq!(
        call_endings(&ran),
        [
            "unknown a unknown_tool",
            "change b ok",
            "look c ok",
            "expert toolu_0 ok"
        ]
    );
}

/// In a truncated or refused response neither the incomplete call runs, nor calls that were still waiting.
#[test]
fn a_truncated_or_refused_stream_ends_its_calls() {
    for (reason, expected) in [
        ("max_tokens", "cut off at its token limit"),
        ("refusal", "its model declined"),
        (
            "model_context_window_exceeded",
            "outgrew its model's context window",
        ),
    ] {
        let (toolq, api) = streaming_agent("", |dir| {
            let mut steps = started_call_steps(dir);
            steps.push(send_step(message_end(reason)));
            vec![ApiBehavior::Stream(steps), text_response("never requested")]
        });
        let ran = toolq.run(&["run"]).assert_exit(0);
        let (result_text, is_error) = single_result(&ran);
        assert!(
            is_error && result_text.contains(expected) && result_text.contains("So far."),
            "{result_text}"
        );
        assert_eq!(api.requests().len(), 1);
        let mut ends = call_endings(&ran);
        ends.sort();
        let [waiting, last] = match reason {
            "refusal" => ["change b response_refused", "look c response_refused"],
            _ => ["change b not_executed", "look c truncated"],
        };
        assert_eq!(
            ends,
            [waiting, "expert toolu_0 agent_failed", "look a ok", last]
        );
        assert_eq!([ran.file("change.2"), ran.file("look.3")], [None, None]);
        // The response is recorded, since it was paid for.
        let log = ran.log_records();
        let responses = log
            .iter()
            .filter(|record| record["type"] == "model_response");
        assert_eq!(responses.count(), 1);
    }
}

/// The API reports a response's usage at its end. If that exhausts the budget, waiting calls don't run.
#[test]
fn the_budget_is_checked_when_the_response_ends() {
    let (toolq, api) = streaming_agent("      budget: {tokens: 100}\n", |dir| {
        let usage = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 100}});
        vec![
            ApiBehavior::Stream(vec![
                send_step(message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#))),
                StreamStep::WaitForFile(dir.join("look.1")),
                send_step(
                    call_block(1, ("b", "change", r#"{"name":"2"}"#))
                        + &sse_event(&usage)
                        + &message_end("tool_use"),
                ),
            ]),
            text_response("never requested"),
        ]
    });
    let ran = toolq.run(&["run"]).assert_exit(3);
    assert!(
        single_result(&ran).0.contains("100 tokens"),
        "{}",
        single_result(&ran).0
    );
    assert_eq!(api.requests().len(), 1);
    let mut ends = call_endings(&ran);
    ends.sort();
    assert_eq!(
        ends,
        [
            "change b not_executed",
            "expert toolu_0 over_budget",
            "look a ok"
        ]
    );
    assert_eq!(ran.file("change.2"), None);
}

/// If an agent times out while its model streams, the calls so far get their results before the agent does.
#[test]
fn an_agents_timeout_ends_its_stream() {
    let (toolq, api) = streaming_agent("", |dir| {
        let mut steps = started_call_steps(dir);
        steps.push(StreamStep::HoldOpen);
        vec![ApiBehavior::Stream(steps)]
    });
    let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
    let tools = tools.replace(
        "    retry: {times: 3",
        "    timeout: 3s\n    retry: {times: 3",
    );
    let ran = toolq.tools(&tools).run(&["run"]).assert_exit(0);
    let (result_text, is_error) = single_result(&ran);
    assert!(is_error && result_text.contains("3s"), "{result_text}");
    assert_eq!(api.requests().len(), 1);
    assert_eq!(
        call_endings(&ran),
        [
            "look a ok",
            "change b not_executed",
            "look c truncated",
            "expert toolu_0 timeout"
        ]
    );
}

/// Text that a model streamed before a timeout is kept, whether or not a call of that response has started.
#[test]
fn text_streamed_before_a_timeout_is_kept() {
    let (toolq, _api) = streaming_agent("", |_| {
        let so_far = vec![
            send_step(message_start() + &text_block_events(0, "So far, so good.")),
            StreamStep::HoldOpen,
        ];
        let look = call_block(1, ("a", "look", r#"{"name":"1"}"#));
        let first = vec![send_step(
            message_start() + &text_block_events(0, "First.") + &look + &message_end("tool_use"),
        )];
        vec![ApiBehavior::Stream(first), ApiBehavior::Stream(so_far)]
    });
    let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
    let tools = tools.replace("    retry: {", "    timeout: 3s\n    retry: {");
    let (result_text, is_error) = single_result(&toolq.tools(&tools).run(&["run"]).assert_exit(0));
    assert!(
        is_error && result_text.contains("So far, so good."),
        "{result_text}"
    );
}

/// A response is complete when its last event has arrived, even if the connection stays open.
#[test]
fn a_complete_response_does_not_wait_for_eof() {
    let anthropic = message_start() + &text_block_events(0, "Done.") + &message_end("end_turn");
    for (keys, events) in [
        ("", anthropic),
        ("      api: openai-chat\n", chat_text_stream("Done.")),
    ] {
        let (toolq, api) = streaming_agent(keys, |_| {
            vec![ApiBehavior::Stream(vec![
                send_step(events),
                StreamStep::HoldOpen,
            ])]
        });
        let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
        let tools = tools.replace("    retry: {", "    timeout: 20s\n    retry: {");
        let ran = toolq.tools(&tools).run(&["run"]).assert_exit(0);
        assert_eq!(single_result(&ran), ("Done.".to_owned(), false));
        assert_eq!(api.requests().len(), 1);
    }
}

/// An interrupt while a model streams: running calls are stopped, and every call gets its result.
#[test]
fn an_interrupt_ends_the_stream() {
    let (toolq, _api) = streaming_agent("", |dir| {
        vec![ApiBehavior::Stream(vec![
            send_step(message_start() + &call_block(0, ("a", "wait", r#"{"name":"1"}"#))),
            StreamStep::WaitForFile(dir.join("wait.1")),
            send_step(
                call_block(1, ("b", "change", r#"{"name":"2"}"#))
                    + &call_block(2, ("c", "look", r#"{"name":"3"}"#)),
            ),
            StreamStep::CreateFile(dir.join("calls-sent")),
            StreamStep::HoldOpen,
        ])]
    });
    let mut command = toolq.command(&["run", "--log", "log.jsonl"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let input = crate::support::model_response(&[("expert", json!({"query": "why?"}))]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    // If the file never appears, the API closes the stream and the run ends.
    while !toolq.path().join("calls-sent").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let log = std::fs::read_to_string(toolq.path().join("log.jsonl")).unwrap();
    let log = parse_json_lines(&log);
    let mut ends = call_endings_in(&log);
    // The interrupt may arrive before the last two calls were read.
    ends.retain(|end| !end.starts_with("change b not") && !end.starts_with("look c not"));
    assert_eq!(ends, ["wait a interrupted", "expert toolu_0 interrupted"]);
    assert_eq!(log.last().unwrap()["type"], "session_end");
}

/// Chat completions behave the same: started calls keep their results; waiting and truncated calls don't run.
#[test]
fn chat_completions_end_in_the_same_ways() {
    let calls = [
        ("a", "look", r#"{"name":"1"}"#),
        ("b", "change", r#"{"name":"2"}"#),
        ("c", "look", r#"{"name":"#),
    ];
    let whole = Vendor::Chat.events(&calls, true);
    let second_call = whole.iter().position(|event| event.contains("change"));
    let split = second_call.unwrap() + 1;
    let broken = r#"data: {"error":{"code":502,"message":"upstream failed"}}"#;
    for (rest, expected) in [
        (whole[split..].concat(), "cut off at its token limit"),
        (
            whole[split..whole.len() - 2].concat() + broken + "\n\n",
            "upstream failed",
        ),
    ] {
        let (toolq, api) = streaming_agent("      api: openai-chat\n", |dir| {
            vec![ApiBehavior::Stream(vec![
                send_step(whole[..split].concat()),
                StreamStep::WaitForFile(dir.join("look.1")),
                send_step(rest),
            ])]
        });
        let ran = toolq.run(&["run"]).assert_exit(0);
        let (result_text, is_error) = single_result(&ran);
        assert!(is_error && result_text.contains(expected), "{result_text}");
        assert_eq!(api.requests().len(), 1);
        let mut ends = call_endings(&ran);
        ends.sort();
        assert_eq!(
            ends,
            [
                "change b not_executed",
                "expert toolu_0 agent_failed",
                "look a ok",
                "look c truncated"
            ],
            "{expected}"
        );
    }
}
