//! Streamed answers that come to no good end when calls of them have started.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::api::{Act, Step, text};
use crate::scenes::result;
use crate::speech::{chat_text, ends, ends_of, said, say, scene};
use crate::support::json_lines;
use crate::vendors::{Vendor, block, call, end, event, start};

/// Says something, and calls `look`, which has its effect; then calls `change`, and begins another call.
fn begin(folder: &std::path::Path) -> Vec<Step> {
    vec![
        say(start() + &said(0, "So far.") + &call(1, ("a", "look", r#"{"name":"1"}"#))),
        Step::Until(folder.join("look.1")),
        say(call(2, ("b", "change", r#"{"name":"2"}"#))
            + &block(3, ("c", "look", r#"{"name":"3"}"#), 4)),
    ]
}

fn overloaded() -> String {
    let error = json!({"type": "overloaded_error", "message": "busy"});
    event(&json!({"type": "error", "error": error}))
}

/// FAULTS 103: asked again, the calls would run twice.
#[test]
fn what_broke_off_behind_a_started_call_is_not_asked_again() {
    for (last, words) in [
        (overloaded(), "busy"),
        ("data: {\n\n".to_owned(), "is no JSON"),
        (": nothing\n\n".to_owned(), "ended before the answer did"),
    ] {
        let (toolq, api) = scene("      fallback_model: model-2\n", |folder| {
            let mut steps = begin(folder);
            steps.push(say(last));
            vec![Act::Speak(steps), text("never asked")]
        });
        let ran = toolq.run(&["run"]).exits(0);
        let (told, is_error) = result(&ran);
        assert!(is_error && told.contains(words), "{told}");
        assert!(
            told.contains("its model's answer broke off when calls of it had started")
                && told.contains("So far."),
            "{told}"
        );
        assert_eq!(api.heard().len(), 1, "{words}");
        let mut ends = ends(&ran);
        // The call that ran may have ended before or after the others were answered.
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
        let log = ran.log();
        assert!(log.iter().all(|record| record["type"] != "model_response"));
    }
}

/// While nothing of it started, what broke off is asked again, as it is without streams.
#[test]
fn what_broke_off_before_is_asked_again() {
    let (toolq, api) = scene("", |_| {
        // One that waits, and one that never runs: neither has begun anything.
        let asked = start()
            + &call(0, ("a", "unknown", "{}"))
            + &call(1, ("b", "change", r#"{"name":"2"}"#))
            + &call(2, ("c", "look", r#"{"name":"3"}"#));
        let broken = Act::Speak(vec![say(asked.clone()), say(overloaded())]);
        let whole = Act::Speak(vec![say(asked), say(end("tool_use"))]);
        vec![broken, whole, text("Done.")]
    });
    let ran = toolq.run(&["run"]).exits(0);
    assert_eq!(result(&ran), ("Done.".to_owned(), false));
    assert_eq!(api.heard().len(), 3);
    assert_eq!(
        ends(&ran),
        [
            "unknown a unknown_tool",
            "change b ok",
            "look c ok",
            "expert toolu_0 ok"
        ]
    );
}

/// FAULTS 103: the call in which the answer was cut off does not run, nor does what waits.
#[test]
fn an_answer_that_was_cut_off_or_declined_ends_its_calls() {
    for (reason, words) in [
        ("max_tokens", "cut off at its limit of tokens"),
        ("refusal", "its model declined"),
        (
            "model_context_window_exceeded",
            "longer than its model can read",
        ),
    ] {
        let (toolq, api) = scene("", |folder| {
            let mut steps = begin(folder);
            steps.push(say(end(reason)));
            vec![Act::Speak(steps), text("never asked")]
        });
        let ran = toolq.run(&["run"]).exits(0);
        let (told, is_error) = result(&ran);
        assert!(
            is_error && told.contains(words) && told.contains("So far."),
            "{told}"
        );
        assert_eq!(api.heard().len(), 1);
        let mut ends = ends(&ran);
        ends.sort();
        let last = match reason {
            "refusal" => "look c not_executed",
            _ => "look c truncated",
        };
        assert_eq!(
            ends,
            [
                "change b not_executed",
                "expert toolu_0 agent_failed",
                "look a ok",
                last
            ]
        );
        assert_eq!([ran.file("change.2"), ran.file("look.3")], [None, None]);
        // The answer was paid for.
        let log = ran.log();
        let responses = log
            .iter()
            .filter(|record| record["type"] == "model_response");
        assert_eq!(responses.count(), 1);
    }
}

/// What an answer takes is said at its end: what waits for that does not run.
#[test]
fn a_budget_is_looked_at_when_the_answer_is_over() {
    let (toolq, api) = scene("      budget: {tokens: 100}\n", |folder| {
        let used = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 100}});
        vec![
            Act::Speak(vec![
                say(start() + &call(0, ("a", "look", r#"{"name":"1"}"#))),
                Step::Until(folder.join("look.1")),
                say(call(1, ("b", "change", r#"{"name":"2"}"#)) + &event(&used) + &end("tool_use")),
            ]),
            text("never asked"),
        ]
    });
    let ran = toolq.run(&["run"]).exits(3);
    assert!(result(&ran).0.contains("100 tokens"), "{}", result(&ran).0);
    assert_eq!(api.heard().len(), 1);
    let mut ends = ends(&ran);
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

/// An agent whose time is over while its model speaks: what was asked by then is answered before it is.
#[test]
fn the_time_of_an_agent_ends_what_it_hears() {
    let (toolq, api) = scene("", |folder| {
        let mut steps = begin(folder);
        steps.push(Step::Hold);
        vec![Act::Speak(steps)]
    });
    let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
    let tools = tools.replace(
        "    retry: {times: 3",
        "    timeout: 3s\n    retry: {times: 3",
    );
    let ran = toolq.tools(&tools).run(&["run"]).exits(0);
    let (told, is_error) = result(&ran);
    assert!(is_error && told.contains("3s"), "{told}");
    assert_eq!(api.heard().len(), 1);
    assert_eq!(
        ends(&ran),
        [
            "look a ok",
            "change b not_executed",
            "look c truncated",
            "expert toolu_0 timeout"
        ]
    );
}

/// What a model says until the time is over is not lost, whether or not something of it started.
#[test]
fn what_was_spoken_is_the_last_word() {
    let (toolq, _api) = scene("", |_| {
        let so_far = vec![say(start() + &said(0, "So far, so good.")), Step::Hold];
        let look = call(1, ("a", "look", r#"{"name":"1"}"#));
        let first = vec![say(start() + &said(0, "First.") + &look + &end("tool_use"))];
        vec![Act::Speak(first), Act::Speak(so_far)]
    });
    let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
    let tools = tools.replace("    retry: {", "    timeout: 3s\n    retry: {");
    let (told, is_error) = result(&toolq.tools(&tools).run(&["run"]).exits(0));
    assert!(is_error && told.contains("So far, so good."), "{told}");
}

/// The answer is what counts, and not the end of its body.
#[test]
fn an_answer_that_is_over_is_waited_for_no_longer() {
    let first = start() + &said(0, "Done.") + &end("end_turn");
    for (keys, last) in [
        ("", first),
        ("      api: openai-chat\n", chat_text("Done.")),
    ] {
        let (toolq, api) = scene(keys, |_| vec![Act::Speak(vec![say(last), Step::Hold])]);
        let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
        let tools = tools.replace("    retry: {", "    timeout: 20s\n    retry: {");
        let ran = toolq.tools(&tools).run(&["run"]).exits(0);
        assert_eq!(result(&ran), ("Done.".to_owned(), false));
        assert_eq!(api.heard().len(), 1);
    }
}

/// A run that is ended while a model speaks: the same, and what runs is ended.
#[test]
fn an_interrupt_ends_what_is_spoken() {
    let (toolq, _api) = scene("", |folder| {
        vec![Act::Speak(vec![
            say(start() + &call(0, ("a", "wait", r#"{"name":"1"}"#))),
            Step::Until(folder.join("wait.1")),
            say(call(1, ("b", "change", r#"{"name":"2"}"#))
                + &call(2, ("c", "look", r#"{"name":"3"}"#))),
            Step::Touch(folder.join("spoken")),
            Step::Hold,
        ])]
    });
    let mut command = toolq.command(&["run", "--log", "log.jsonl"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let asked = crate::support::response(&[("expert", json!({"query": "why?"}))]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(asked.as_bytes()).unwrap();
    drop(stdin);
    // Where that never comes, the API breaks off, and the run ends.
    while !toolq.path().join("spoken").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let log = std::fs::read_to_string(toolq.path().join("log.jsonl")).unwrap();
    let log = json_lines(&log);
    let mut ends = ends_of(&log);
    // The last two may have been read, or not yet.
    ends.retain(|end| !end.starts_with("change b not") && !end.starts_with("look c not"));
    assert_eq!(ends, ["wait a interrupted", "expert toolu_0 interrupted"]);
    assert_eq!(log.last().unwrap()["type"], "session_end");
}

/// The same of chat completions: what had started keeps its result, what waits and what was cut does not run.
#[test]
fn chat_completions_end_in_the_same_ways() {
    let calls = [
        ("a", "look", r#"{"name":"1"}"#),
        ("b", "change", r#"{"name":"2"}"#),
        ("c", "look", r#"{"name":"#),
    ];
    let whole = Vendor::Chat.events(&calls, true);
    let second = whole.iter().position(|event| event.contains("change"));
    let begun = second.unwrap() + 1;
    let broken = r#"data: {"error":{"code":502,"message":"upstream is gone"}}"#;
    for (rest, words) in [
        (whole[begun..].concat(), "cut off at its limit of tokens"),
        (
            whole[begun..whole.len() - 2].concat() + broken + "\n\n",
            "upstream is gone",
        ),
    ] {
        let (toolq, api) = scene("      api: openai-chat\n", |folder| {
            vec![Act::Speak(vec![
                say(whole[..begun].concat()),
                Step::Until(folder.join("look.1")),
                say(rest),
            ])]
        });
        let ran = toolq.run(&["run"]).exits(0);
        let (told, is_error) = result(&ran);
        assert!(is_error && told.contains(words), "{told}");
        assert_eq!(api.heard().len(), 1);
        let mut ends = ends(&ran);
        ends.sort();
        assert_eq!(
            ends,
            [
                "change b not_executed",
                "expert toolu_0 agent_failed",
                "look a ok",
                "look c truncated"
            ],
            "{words}"
        );
    }
}
