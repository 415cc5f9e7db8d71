//! Answers that come as streams: which calls start while the model still speaks.

use serde_json::json;

use crate::api::{Act, Step, message, ok, text};
use crate::scenes::result;
use crate::speech::{chat_text, ends, recorded, said, say, scene, told};
use crate::vendors::{Asked, Vendor, block, call, end, event, start};

/// FAULTS 17: the API goes on only when the first call has had its effect. What writes starts when the answer is over, and
/// is on record.
#[test]
fn a_call_starts_when_its_block_stops() {
    for vendor in [Vendor::Anthropic, Vendor::Chat] {
        let calls: [Asked; 4] = [
            ("a", "look", r#"{"name":"1"}"#),
            ("b", "renew", r#"{"name":"2"}"#),
            ("c", "change", r#"{"name":"3"}"#),
            ("d", "look", r#"{"name":"4"}"#),
        ];
        let events = vendor.events(&calls, false);
        let begin = |name: &str| {
            events
                .iter()
                .position(|event| event.contains(name))
                .unwrap()
        };
        let renew = begin("renew");
        let last = match vendor {
            Vendor::Chat => Act::Speak(vec![say(chat_text("Done."))]),
            _ => text("Done."),
        };
        let api = match vendor {
            Vendor::Chat => "      api: openai-chat\n",
            _ => "",
        };
        let (toolq, api) = scene(api, |folder| {
            vec![
                Act::Speak(vec![
                    say(events[..=renew].concat()),
                    Step::Until(folder.join("look.1")),
                    say(events[renew + 1..].concat()),
                ]),
                last,
            ]
        });
        let ran = toolq.run(&["run", "--log", "log.jsonl"]).exits(0);
        assert_eq!(result(&ran), ("Done.".to_owned(), false));
        assert_eq!(api.heard().len(), 2, "{vendor:?}");
        assert_eq!(api.heard()[0].body["stream"], true);
        let sent = match vendor {
            Vendor::Chat => api.messages(1)[2..]
                .iter()
                .map(|message| message["content"].as_str().unwrap().to_owned())
                .collect(),
            _ => told(&api, 1),
        };
        assert_eq!(sent, ["saw 1", "renewed 2", "changed 3", "saw 4"]);
    }
}

/// The record of an answer stands before the starts of what writes, so that no later run asks again for what it said.
#[test]
fn an_answer_is_on_record_before_what_writes_starts() {
    let (toolq, _api) = scene("", |folder| {
        vec![
            Act::Speak(vec![
                say(start() + &call(0, ("a", "look", r#"{"name":"1"}"#))),
                Step::Until(folder.join("look.1")),
                say(call(1, ("b", "change", r#"{"name":"2"}"#)) + &end("tool_use")),
            ]),
            text("Done."),
        ]
    });
    let script = "\"$TOOLQ\" run -q > answer && \"$TOOLQ\" log verify && cat answer";
    let ran = toolq.shell(script).exits(0);
    let records = recorded(&ran);
    let at = |record: &str| records.iter().position(|known| known == record).unwrap();
    let first = at("model_response toolu_0");
    assert!(at("tool_start a") < first, "{records:?}");
    assert!(first < at("tool_start b"), "{records:?}");
    assert_eq!(
        ends(&ran),
        ["look a ok", "change b ok", "expert toolu_0 ok"]
    );
}

/// The same call in two answers that differ in nothing but how they came has the same end.
#[test]
fn a_stream_that_ends_in_a_completion_is_an_answer() {
    let (toolq, api) = scene("", |_| {
        let answer = r#"{"result":"It is so."}"#;
        let calls = [
            ("a", "look", r#"{"name":"1"}"#),
            ("b", "attempt_completion", answer),
            ("c", "look", r#"{"name":"2"}"#),
            ("d", "change", r#"{"name":"3"}"#),
        ];
        vec![Act::Speak(vec![say(Vendor::Anthropic
            .events(&calls, false)
            .concat())])]
    });
    let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
    let tools = tools
        .replace(
            "version: 1\n",
            "version: 1\nbuiltins: [attempt_completion]\n",
        )
        .replace("wait]\n", "wait, attempt_completion]\n");
    let ran = toolq.tools(&tools).run(&["run"]).exits(0);
    assert_eq!(result(&ran), ("It is so.".to_owned(), false));
    assert_eq!(api.heard().len(), 1);
    let ends = ends(&ran);
    assert_eq!(
        ends,
        [
            "look a ok",
            "attempt_completion b ok",
            "look c not_executed",
            "change d not_executed",
            "expert toolu_0 ok"
        ],
        "{ends:?}"
    );
    assert_eq!(ran.file("look.2"), None);
}

/// A completion whose id comes twice is none: the next one is the answer, streamed or not.
#[test]
fn the_first_completion_that_counts_is_the_answer() {
    for stream in [true, false] {
        let (toolq, api) = scene("", |folder| {
            let completion = |id, result| (id, "attempt_completion", result);
            let calls: [Asked; 4] = [
                ("w", "wait", r#"{"name":"1"}"#),
                completion("a", r#"{"result":"not this"}"#),
                ("a", "look", r#"{"name":"2"}"#),
                completion("z", r#"{"result":"It is so."}"#),
            ];
            if !stream {
                let uses = calls.map(|(id, name, input)| {
                    let input: serde_json::Value = serde_json::from_str(input).unwrap();
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                });
                std::fs::write(folder.join("1.go"), "").unwrap();
                return vec![ok(message(json!(uses), "tool_use")), text("asked again")];
            }
            let events = Vendor::Anthropic.events(&calls, false);
            let second = events.iter().position(|event| event.contains("\"z\""));
            let (begin, rest) = events.split_at(second.unwrap());
            vec![
                Act::Speak(vec![
                    say(begin.concat()),
                    Step::Until(folder.join("wait.1")),
                    say(rest.concat()),
                    Step::Touch(folder.join("1.go")),
                ]),
                text("asked again"),
            ]
        });
        let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
        let tools = tools
            .replace(
                "version: 1\n",
                "version: 1\nbuiltins: [attempt_completion]\n",
            )
            .replace("wait]\n", "wait, attempt_completion]\n")
            .replace("stream: true", &format!("stream: {stream}"));
        // One at a time, so that what is revoked has not started.
        let ran = toolq.tools(&tools).run(&["run", "-j", "1"]).exits(0);
        assert_eq!(result(&ran), ("It is so.".to_owned(), false), "{stream}");
        assert_eq!(api.heard().len(), 1, "{stream}");
    }
}

/// An id that comes twice: what had started keeps its result, what had not does not run.
#[test]
fn a_second_id_revokes_what_has_not_started() {
    let (toolq, api) = scene("", |folder| {
        vec![
            Act::Speak(vec![
                say(start()
                    + &call(0, ("a", "wait", r#"{"name":"1"}"#))
                    + &call(1, ("b", "look", r#"{"name":"2"}"#))),
                Step::Until(folder.join("wait.1")),
                say(call(2, ("b", "look", r#"{"name":"3"}"#))
                    + &call(3, ("a", "look", r#"{"name":"4"}"#))
                    + &end("tool_use")),
                Step::Touch(folder.join("1.go")),
            ]),
            text("Done."),
        ]
    });
    // One at a time, so that the second call waits.
    let ran = toolq.run(&["run", "-j", "1"]).exits(0);
    let same = "!Not executed: another call of this turn has the same id.";
    assert_eq!(told(&api, 1), ["waited for 1", same, same, same]);
    assert_eq!(ran.file("look.2"), None);
    let log = ran.log();
    let end = log
        .iter()
        .find(|record| record["metadata"]["agent_name"] == "expert");
    let used = &end.unwrap()["metadata"];
    assert_eq!(
        [&used["tool_calls_made"], &used["corrections"]],
        [&json!(4), &json!(3)]
    );
}

/// At `max_turns` the calls of an answer don't run, however early they are known.
#[test]
fn the_calls_of_the_last_answer_wait_for_nothing() {
    let (toolq, api) = scene("      max_turns: 1\n", |_| {
        let asked = start() + &said(0, "So far.") + &call(1, ("a", "look", r#"{"name":"1"}"#));
        vec![Act::Speak(vec![say(asked), say(end("tool_use"))])]
    });
    let ran = toolq.run(&["run"]).exits(0);
    assert!(
        result(&ran)
            .0
            .starts_with("So far.\n(The agent was not done")
    );
    assert_eq!(api.heard().len(), 1);
    assert_eq!(ends(&ran), ["expert toolu_0 ok"]);
    assert_eq!(ran.file("look.1"), None);
}

/// FAULTS 103: a rest with calls is answered as any answer with calls, one without goes on.
#[test]
fn a_pause_may_have_calls() {
    let (toolq, api) = scene("      max_turns: 5\n", |folder| {
        let asked = start() + &call(0, ("a", "look", r#"{"name":"1"}"#));
        vec![
            Act::Speak(vec![
                say(asked),
                Step::Until(folder.join("look.1")),
                say(end("pause_turn")),
            ]),
            Act::Speak(vec![say(start() + &said(0, "wait") + &end("pause_turn"))]),
            text("Done."),
        ]
    });
    let ran = toolq.run(&["run"]).exits(0);
    assert_eq!(result(&ran), ("Done.".to_owned(), false));
    assert_eq!(told(&api, 1), ["saw 1"]);
    assert_eq!(api.messages(2).last().unwrap()["role"], "assistant");
}

/// A call whose block stopped is as it is: what comes of it later ends the answer.
#[test]
fn nothing_is_added_to_a_whole_call() {
    let (toolq, api) = scene("", |folder| {
        let later = json!({"type": "input_json_delta", "partial_json": ",\"name\":\"2\"}"});
        let later = event(&json!({"type": "content_block_delta", "index": 0, "delta": later}));
        vec![Act::Speak(vec![
            say(start() + &call(0, ("a", "look", r#"{"name":"1"}"#))),
            Step::Until(folder.join("look.1")),
            say(later + &block(1, ("b", "look", r#"{"name":"2"}"#), 9)),
        ])]
    });
    let ran = toolq.run(&["run"]).exits(0);
    let (told, is_error) = result(&ran);
    assert!(
        is_error && told.contains("a piece of a call that was whole already"),
        "{told}"
    );
    assert_eq!(api.heard().len(), 1);
    assert_eq!(ends(&ran)[0], "look a ok");
}
