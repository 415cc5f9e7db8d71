//! Streams that break off, or are cut off by a limit.

use super::support::Toolq;
use super::talk::TOOLS;
use super::talk::Talk;
use super::vendors::{Vendor, block, call, end, event, start, stop};
use serde_json::json;

const BROKE_OFF: &str = "!Not executed: the answer that asked for it broke off before its end.";
const INSIDE: &str = "!Not executed: the answer broke off inside this call.";

/// FAULTS 17: what ran is answered, what waits is not executed.
#[test]
fn what_ran_is_answered() {
    let mut talk = Talk::start(&["run"]);
    talk.say(
        &(start()
            + &call(0, ("a", "look", r#"{"name":"1"}"#))
            + &call(1, ("b", "wait", r#"{"name":"2"}"#))),
    );
    talk.until("look.1");
    talk.until("wait.2");
    talk.say(
        &(call(2, ("c", "change", r#"{"name":"3"}"#)) + &call(3, ("d", "look", r#"{"name":"4"}"#))),
    );
    talk.say(&block(4, ("e", "look", r#"{"name":"5"}"#), 4));
    // What runs goes on to its own end.
    talk.touch("2.go");
    let ended = talk.close().exits(3);
    assert_eq!(
        ended.results(),
        [
            "a saw 1".to_owned(),
            "b waited for 2".to_owned(),
            format!("c {BROKE_OFF}"),
            format!("d {BROKE_OFF}"),
            format!("e {INSIDE}")
        ]
    );
    assert!(!ended.has("change.3") && !ended.has("look.4") && !ended.has("look.5"));
    assert!(
        ended
            .stderr
            .contains("the stream breaks off in the middle of a message"),
        "{}",
        ended.stderr
    );
}

/// FAULTS 103: the API says an error after its 200; nothing behind it is read.
#[test]
fn an_error_ends_the_stream() {
    let mut talk = Talk::start(&["run", "--log", "log.jsonl"]);
    talk.say(
        &(start()
            + &call(0, ("a", "look", r#"{"name":"1"}"#))
            + &call(1, ("b", "change", r#"{"name":"2"}"#))),
    );
    talk.until("look.1");
    talk.say(&event(
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ));
    talk.say(&end("tool_use"));
    let ended = talk.close().exits(3);
    assert_eq!(
        ended.results(),
        ["a saw 1".to_owned(), format!("b {BROKE_OFF}")]
    );
    assert!(
        ended
            .stderr
            .contains("an error (overloaded_error: Overloaded)"),
        "{}",
        ended.stderr
    );
    assert!(!ended.has("change.2"));
    // A later run may start what did not run.
    let log = ended.json("log.jsonl");
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

/// Before anything was asked, an error is one of the input, and nothing ran.
#[test]
fn an_error_instead_of_an_answer_is_none() {
    let error = event(
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    );
    let run = |text: String| Toolq::new().tools(TOOLS).stdin(text).run(&["run"]);
    run(error.clone()).exits(2);
    run(start() + &error).exits(3);
    run("data: ".to_owned()).exits(2);
    run("data: {}".to_owned()).exits(2);
}

/// FAULTS 103: a message that ended at a limit. Its last call is not executed where it had not started.
#[test]
fn a_limit_cuts_off_the_last_call() {
    let mut talk = Talk::start(&["run"]);
    let cut = r#"{"name":"2","more":"#;
    talk.say(
        &(start()
            + &call(0, ("a", "change", r#"{"name":"1"}"#))
            + &block(1, ("b", "change", cut), 4)),
    );
    talk.say(&(stop(1) + &end("max_tokens")));
    let ended = talk.close().exits(0);
    let results = ended.results();
    assert_eq!(results[0], "a changed 1");
    assert!(
        results[1].starts_with("b !Not executed: the answer ended at its token limit"),
        "{results:?}"
    );
}

/// What had started before the cut was seen keeps its result.
#[test]
fn a_call_that_had_started_survives_the_cut() {
    let mut talk = Talk::start(&["run"]);
    talk.say(&(start() + &call(0, ("a", "look", r#"{"name":"1"}"#))));
    talk.until("look.1");
    talk.say(&end("max_tokens"));
    assert_eq!(talk.close().exits(0).results(), ["a saw 1"]);
}

/// FAULTS 17: cut behind any event, and in any: n calls that were seen, n results, and no write ever ran.
#[test]
fn a_stream_cut_anywhere_answers_every_call() {
    for vendor in Vendor::ALL {
        let calls = [
            ("a", "look", r#"{"name":"1"}"#),
            ("b", "change", r#"{"name":"2"}"#),
            ("c", "look", r#"{"name":"3"}"#),
        ];
        let events = vendor.events(&calls, false);
        let over = events
            .iter()
            .rposition(|event| !event.contains("[DONE]"))
            .unwrap();
        for cut in 1..=over {
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
            let ran = Toolq::new()
                .tools(TOOLS)
                .stdin(text)
                .run(&["run", "--to", "block-lines"])
                .exits(3);
            assert_eq!(ran.lines().len(), seen, "{vendor:?} {cut}: {}", ran.stdout);
            assert!(ran.file("change.2").is_none(), "{vendor:?} {cut}");
            assert!(ran.stderr.contains("breaks off"), "{}", ran.stderr);
        }
    }
}

/// Each of several inputs breaks off by itself, and each is said.
#[test]
fn every_input_that_breaks_off_is_said() {
    let cut = |id: &str| start() + &call(0, (id, "look", r#"{"name":"1"}"#));
    for command in ["run", "plan"] {
        let ran = Toolq::new()
            .tools(TOOLS)
            .file("one.sse", cut("a"))
            .file("two.sse", cut("b"))
            .run(&[command, "one.sse", "two.sse"])
            .exits(3);
        for name in ["one.sse", "two.sse"] {
            let said = format!("error: {name}:");
            assert_eq!(ran.stderr.matches(&said).count(), 1, "{}", ran.stderr);
        }
    }
}
