//! When a call of a stream starts.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::Toolq;
use super::talk::{TOOLS, Talk};
use super::vendors::{Vendor, block, call, end, event, start, stop};

/// FAULTS 17: what only looks runs while the message is still being spoken; what writes, and all behind it, when it is over.
#[test]
fn reads_run_at_once_and_writes_at_the_end() {
    let mut talk = Talk::start(&["run"]);
    talk.say(&(start() + &call(0, ("a", "look", r#"{"name":"1"}"#))));
    talk.until("look.1");
    talk.say(&call(1, ("b", "renew", r#"{"name":"2"}"#)));
    talk.until("renew.2");
    talk.say(
        &(call(2, ("c", "change", r#"{"name":"3"}"#)) + &call(3, ("d", "look", r#"{"name":"4"}"#))),
    );
    // What was said before is read when the answer to this is there.
    talk.say(&block(4, ("e", "look", r#"{"name":"5"}"#), 3));
    assert!(!talk.has("change.3") && !talk.has("look.4"));
    talk.say(&(stop(4) + &end("tool_use")));
    let ended = talk.close().exits(0);
    assert_eq!(
        ended.results(),
        [
            "a saw 1",
            "b renewed 2",
            "c changed 3",
            "d saw 4",
            "e saw 5"
        ]
    );
}

/// The answer is there when the message is over and its calls are, whether or not the stream is.
#[test]
fn an_answer_waits_for_its_message_only() {
    let mut talk = Talk::start(&["run"]);
    for name in ["one", "two"] {
        let input = json!({"name": name}).to_string();
        talk.say(&(start() + &call(0, ("a", "change", &input)) + &end("tool_use")));
        let answer: Value = serde_json::from_str(&talk.line()).unwrap();
        assert_eq!(answer["content"][0]["content"], format!("changed {name}"));
    }
    talk.close().exits(0);
}

/// The same of both of the other's forms, and in the form of each.
#[test]
fn every_vendor_is_answered_in_its_form() {
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
        let mut talk = Talk::start(&["run", "--from", "openai-sse"]);
        talk.say(&events[..=first].concat());
        talk.until("look.1");
        talk.say(&events[first + 1..events.len() - 3].concat());
        assert!(!talk.has("change.2"));
        talk.say(&events[events.len() - 3..].concat());
        let ended = talk.close().exits(0);
        let answers: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!([&answers[0][id], &answers[1][id]], ["a", "b"]);
    }
}

/// FAULTS 17: what is no stream waits for its end, and nothing runs before.
#[test]
fn a_document_is_read_to_its_end() {
    let asked = r#"{"type":"tool_use","id":"a","name":"look","input":{"name":"1"}}"#;
    let mut talk = Talk::start(&["run"]);
    talk.say(&format!("{asked}\n{asked}\n"));
    talk.say("nonsense");
    let ended = talk.close().exits(2);
    assert!(!ended.has("look.1"));
    assert!(ended.stderr.contains("stdin:3:"), "{}", ended.stderr);
}

/// A stream without calls asks for nothing, and leaves no log.
#[test]
fn a_stream_may_ask_for_nothing() {
    let mut talk = Talk::start(&["run"]);
    talk.say(&(start() + &end("end_turn")));
    let ended = talk.close().exits(5);
    assert_eq!(ended.stdout, "");
    assert!(!ended.has("state"));
}

/// In a stream, what had started before the second id was seen keeps its result.
#[test]
fn a_second_id_revokes_what_has_not_started() {
    let mut talk = Talk::start(&["run", "-j", "1"]);
    talk.say(
        &(start()
            + &call(0, ("a", "wait", r#"{"name":"1"}"#))
            + &call(1, ("b", "look", r#"{"name":"2"}"#))),
    );
    talk.until("wait.1");
    talk.say(
        &(call(2, ("b", "look", r#"{"name":"3"}"#))
            + &call(3, ("a", "look", r#"{"name":"4"}"#))
            + &end("tool_use")),
    );
    talk.touch("1.go");
    let ended = talk.close().exits(0);
    let same = "!Not executed: another call of this turn has the same id.";
    let same = |id: &str| format!("{id} {same}");
    assert_eq!(
        ended.results(),
        ["a waited for 1".to_owned(), same("b"), same("b"), same("a")]
    );
    assert!(!ended.has("look.2") && !ended.has("look.3") && !ended.has("look.4"));
}

/// A signal ends a run whose stream would go on: every call that was seen is answered.
#[test]
fn a_run_is_ended_while_its_stream_arrives() {
    let mut talk = Talk::start(&["run", "--log", "log.jsonl"]);
    talk.say(
        &(start()
            + &call(0, ("a", "wait", r#"{"name":"1"}"#))
            + &call(1, ("b", "change", r#"{"name":"2"}"#))),
    );
    talk.say(&block(2, ("c", "look", r#"{"name":"3"}"#), 4));
    talk.until("wait.1");
    talk.signal(Signal::TERM);
    let ended = talk.ends().exits(143);
    let results = ended.results();
    assert!(
        results[0].starts_with("a !Interrupted while it ran"),
        "{results:?}"
    );
    assert!(
        results[1].starts_with("b !Not executed: the run was ended"),
        "{results:?}"
    );
    // The last may have been read, or not yet.
    assert!(
        results
            .get(2)
            .is_none_or(|last| last.starts_with("c !Not executed")),
        "{results:?}"
    );
    let log = ended.json("log.jsonl");
    assert_eq!(log.last().unwrap()["type"], "session_end");
}

/// FAULTS 4: a stream that never ends, nor waits, keeps nothing from running.
#[test]
fn a_flood_holds_nothing_up() {
    let asked = start() + &call(0, ("a", "look", r#"{"name":"1"}"#));
    let toolq = Toolq::new().tools(TOOLS).file("begin", asked);
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
    let ran = toolq.shell(script);
    assert!(
        ran.stdout.ends_with("exit 143\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// A budget holds over all that arrives, and what still comes is answered.
#[test]
fn a_budget_answers_what_comes_after_it() {
    let mut talk = Talk::start(&["run", "--max-calls", "1"]);
    talk.say(&(start() + &call(0, ("a", "look", r#"{"name":"1"}"#))));
    talk.until("look.1");
    talk.say(&(call(1, ("b", "look", r#"{"name":"2"}"#)) + &end("tool_use")));
    talk.say(&(start() + &call(0, ("c", "look", r#"{"name":"3"}"#)) + &end("tool_use")));
    let ended = talk.close().exits(3);
    assert!(
        ended
            .stdout
            .lines()
            .nth(1)
            .unwrap()
            .contains("1 call, is used up"),
        "{}",
        ended.stdout
    );
    assert!(!ended.has("look.2") && !ended.has("look.3"));
}

/// Inputs are answered in their order, each in its form.
#[test]
fn streams_and_documents_stand_beside_each_other() {
    let input = r#"{"name":"1"}"#;
    let toolq = Toolq::new().tools(TOOLS).file(
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
    let ran = ran.run(&["run", "one.sse", "two.json", "-"]).exits(0);
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
        .log()
        .into_iter()
        .filter(|record| record["type"] == "turn");
    let turns: Vec<Value> = turns
        .map(|record| record["metadata"]["turn"].clone())
        .collect();
    assert_eq!(turns, [0, 1, 2]);
}

/// A byte order mark, another line end and comments are the standard's.
#[test]
fn a_stream_is_recognised_by_its_first_line() {
    let text = start() + &call(0, ("a", "look", r#"{"name":"1"}"#)) + &end("tool_use");
    for text in [
        format!("\u{FEFF}{text}"),
        format!(": OPENROUTER PROCESSING\n\n{}", text.replace('\n', "\r\n")),
        text.trim_end().replace('\n', "\r"),
        text.replace("data: ", "data:"),
    ] {
        let ran = Toolq::new()
            .tools(TOOLS)
            .stdin(&text)
            .run(&["run"])
            .exits(0);
        assert_eq!(ran.texts(), [("saw 1".to_owned(), false)]);
    }
    let strange = event(&json!({"jsonrpc": "2.0"}));
    let ran = Toolq::new()
        .tools(TOOLS)
        .stdin(strange)
        .run(&["run"])
        .exits(2);
    assert!(
        ran.stderr
            .contains("stdin:2:7: an object with the keys `jsonrpc`"),
        "{}",
        ran.stderr
    );
}
