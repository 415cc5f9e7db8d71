//! Streamed responses: which calls start while the model is still streaming.

use serde_json::{Value, json};

use crate::agent::expert_fixture::single_result;
use crate::agent::streaming_fixture::{
    agent_record_order, call_endings, chat_text_stream, results_sent_to_model, send_step,
    streaming_agent, text_block_events,
};
use crate::support::scripted_api::{
    ApiBehavior, StreamStep, message_body, ok_response, text_response,
};
use crate::support::vendor_messages::{
    StreamedCall, Vendor, call_block, message_end, message_start, open_call_block, sse_event,
};
use crate::support::{CliOutput, parse_json_lines};

/// A read starts as soon as its block is complete: the API continues only after the first call has had its effect. Writes
/// run once the response is complete.
#[test]
fn a_call_starts_when_its_block_stops() {
    for vendor in [Vendor::Anthropic, Vendor::Chat] {
        let calls: [StreamedCall; 4] = [
            ("a", "look", r#"{"name":"1"}"#),
            ("b", "renew", r#"{"name":"2"}"#),
            ("c", "change", r#"{"name":"3"}"#),
            ("d", "look", r#"{"name":"4"}"#),
        ];
        let events = vendor.events(&calls, false);
        let first_event_with = |name: &str| {
            events
                .iter()
                .position(|event| event.contains(name))
                .unwrap()
        };
        let renew = first_event_with("renew");
        let final_response = match vendor {
            Vendor::Chat => ApiBehavior::Stream(vec![send_step(chat_text_stream("Done."))]),
            _ => text_response("Done."),
        };
        let keys = match vendor {
            Vendor::Chat => "      api: openai-chat\n",
            _ => "",
        };
        let (toolq, api) = streaming_agent(keys, |dir| {
            vec![
                ApiBehavior::Stream(vec![
                    send_step(events[..=renew].concat()),
                    StreamStep::WaitForFile(dir.join("look.1")),
                    send_step(events[renew + 1..].concat()),
                ]),
                final_response,
            ]
        });
        let ran = toolq.run(&["run", "--log", "log.jsonl"]).assert_exit(0);
        assert_eq!(single_result(&ran), ("Done.".to_owned(), false));
        assert_eq!(api.requests().len(), 2, "{vendor:?}");
        assert_early_turn_names_its_response(&ran, vendor);
        assert_eq!(api.requests()[0].body["stream"], true);
        let sent = match vendor {
            Vendor::Chat => api.messages(1)[2..]
                .iter()
                .map(|message| message["content"].as_str().unwrap().to_owned())
                .collect(),
            _ => results_sent_to_model(&api, 1),
        };
        assert_eq!(sent, ["saw 1", "renewed 2", "changed 3", "saw 4"]);
    }
}

/// The turn opens before the response is complete, but after the response has given its id.
fn assert_early_turn_names_its_response(ran: &CliOutput, vendor: Vendor) {
    let records = parse_json_lines(&ran.file("log.jsonl").unwrap());
    let mut turns = records.iter().filter(|record| record["type"] == "turn");
    let turn = turns.find(|turn| turn["metadata"]["agent"] == "expert");
    let turn = turn.unwrap();
    assert!(
        turn["metadata"]["message_id"].is_string(),
        "{vendor:?}: {turn}"
    );
}

/// A response is recorded before its writes start, so that no later run requests it again.
#[test]
fn the_response_is_logged_before_writes_start() {
    let (toolq, _api) = streaming_agent("", |dir| {
        vec![
            ApiBehavior::Stream(vec![
                send_step(message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#))),
                StreamStep::WaitForFile(dir.join("look.1")),
                send_step(
                    call_block(1, ("b", "change", r#"{"name":"2"}"#)) + &message_end("tool_use"),
                ),
            ]),
            text_response("Done."),
        ]
    });
    let script = "\"$TOOLQ\" run -q > answer && \"$TOOLQ\" log verify && cat answer";
    let ran = toolq.run_shell(script).assert_exit(0);
    let records = agent_record_order(&ran);
    let at = |record: &str| records.iter().position(|known| known == record).unwrap();
    let response = at("model_response toolu_0");
    assert!(at("tool_start a") < response, "{records:?}");
    assert!(response < at("tool_start b"), "{records:?}");
    assert_eq!(
        call_endings(&ran),
        ["look a ok", "change b ok", "expert toolu_0 ok"]
    );
}

/// A streamed completion ends the agent like one in a complete response.
#[test]
fn a_streamed_completion_is_the_answer() {
    let (toolq, api) = streaming_agent("", |_| {
        let answer = r#"{"result":"It is so."}"#;
        let calls = [
            ("a", "look", r#"{"name":"1"}"#),
            ("b", "attempt_completion", answer),
            ("c", "look", r#"{"name":"2"}"#),
            ("d", "change", r#"{"name":"3"}"#),
        ];
        vec![ApiBehavior::Stream(vec![send_step(
            Vendor::Anthropic.events(&calls, false).concat(),
        )])]
    });
    let tools = std::fs::read_to_string(toolq.path().join("tools.yaml")).unwrap();
    let tools = tools
        .replace(
            "version: 1\n",
            "version: 1\nbuiltins: [attempt_completion]\n",
        )
        .replace("wait]\n", "wait, attempt_completion]\n");
    let ran = toolq.tools(&tools).run(&["run"]).assert_exit(0);
    assert_eq!(single_result(&ran), ("It is so.".to_owned(), false));
    assert_eq!(api.requests().len(), 1);
    let ends = call_endings(&ran);
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

/// A completion with a duplicate id doesn't count: the next one is the answer, streamed or not.
#[test]
fn the_first_valid_completion_is_the_answer() {
    for stream in [true, false] {
        let (toolq, api) = streaming_agent("", |dir| {
            let completion = |id, result| (id, "attempt_completion", result);
            let calls: [StreamedCall; 4] = [
                ("w", "wait", r#"{"name":"1"}"#),
                completion("a", r#"{"result":"not this"}"#),
                ("a", "look", r#"{"name":"2"}"#),
                completion("z", r#"{"result":"It is so."}"#),
            ];
            if !stream {
                let uses = calls.map(|(id, name, input)| {
                    let input: Value = serde_json::from_str(input).unwrap();
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                });
                std::fs::write(dir.join("1.go"), "").unwrap();
                return vec![
                    ok_response(message_body(json!(uses), "tool_use")),
                    text_response("requested again"),
                ];
            }
            let events = Vendor::Anthropic.events(&calls, false);
            let second_completion = events.iter().position(|event| event.contains("\"z\""));
            let (begin, rest) = events.split_at(second_completion.unwrap());
            vec![
                ApiBehavior::Stream(vec![
                    send_step(begin.concat()),
                    StreamStep::WaitForFile(dir.join("wait.1")),
                    send_step(rest.concat()),
                    StreamStep::CreateFile(dir.join("1.go")),
                ]),
                text_response("requested again"),
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
        // One call at a time, so that revoked calls haven't started.
        let ran = toolq.tools(&tools).run(&["run", "-j", "1"]).assert_exit(0);
        assert_eq!(
            single_result(&ran),
            ("It is so.".to_owned(), false),
            "{stream}"
        );
        assert_eq!(api.requests().len(), 1, "{stream}");
    }
}

/// If an id appears twice, a call that has started keeps its result, and the others don't run.
#[test]
fn a_duplicate_id_revokes_calls_that_have_not_started() {
    let (toolq, api) = streaming_agent("", |dir| {
        vec![
            ApiBehavior::Stream(vec![
                send_step(
                    message_start()
                        + &call_block(0, ("a", "wait", r#"{"name":"1"}"#))
                        + &call_block(1, ("b", "look", r#"{"name":"2"}"#)),
                ),
                StreamStep::WaitForFile(dir.join("wait.1")),
                send_step(
                    call_block(2, ("b", "look", r#"{"name":"3"}"#))
                        + &call_block(3, ("a", "look", r#"{"name":"4"}"#))
                        + &message_end("tool_use"),
                ),
                StreamStep::CreateFile(dir.join("1.go")),
            ]),
            text_response("Done."),
        ]
    });
    // One call at a time, so that the second call waits.
    let ran = toolq.run(&["run", "-j", "1"]).assert_exit(0);
    let duplicate = "!Not executed: another call in this turn has the same id.";
    assert_eq!(
        results_sent_to_model(&api, 1),
        ["waited for 1", duplicate, duplicate, duplicate]
    );
    assert_eq!(ran.file("look.2"), None);
    let log = ran.log_records();
    let end = log
        .iter()
        .find(|record| record["metadata"]["agent_name"] == "expert");
    let used = &end.unwrap()["metadata"];
    assert_eq!(
        [&used["tool_calls_made"], &used["corrections"]],
        [&json!(4), &json!(3)]
    );
}

/// In the last of `max_turns` turns no call runs, even if it could have started early.
#[test]
fn calls_of_the_last_turn_never_run() {
    let (toolq, api) = streaming_agent("      max_turns: 1\n", |_| {
        let stream = message_start()
            + &text_block_events(0, "So far.")
            + &call_block(1, ("a", "look", r#"{"name":"1"}"#));
        vec![ApiBehavior::Stream(vec![
            send_step(stream),
            send_step(message_end("tool_use")),
        ])]
    });
    let ran = toolq.run(&["run"]).assert_exit(0);
    assert!(
        single_result(&ran)
            .0
            .starts_with("So far.\n(The agent did not finish")
    );
    assert_eq!(api.requests().len(), 1);
    assert_eq!(call_endings(&ran), ["expert toolu_0 ok"]);
    assert_eq!(ran.file("look.1"), None);
}

/// After a `pause_turn` with calls, their results are sent; without calls, the conversation continues unchanged.
#[test]
fn pause_turn_may_have_calls() {
    let (toolq, api) = streaming_agent("      max_turns: 5\n", |dir| {
        let stream = message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#));
        vec![
            ApiBehavior::Stream(vec![
                send_step(stream),
                StreamStep::WaitForFile(dir.join("look.1")),
                send_step(message_end("pause_turn")),
            ]),
            ApiBehavior::Stream(vec![send_step(
                message_start() + &text_block_events(0, "wait") + &message_end("pause_turn"),
            )]),
            text_response("Done."),
        ]
    });
    let ran = toolq.run(&["run"]).assert_exit(0);
    assert_eq!(single_result(&ran), ("Done.".to_owned(), false));
    assert_eq!(results_sent_to_model(&api, 1), ["saw 1"]);
    assert_eq!(api.messages(2).last().unwrap()["role"], "assistant");
}

/// A complete call can't change any more: further input for it is an error that ends the agent.
#[test]
fn input_after_a_complete_block_is_an_error() {
    let (toolq, api) = streaming_agent("", |dir| {
        let later = json!({"type": "input_json_delta", "partial_json": ",\"name\":\"2\"}"});
        let later = sse_event(&json!({"type": "content_block_delta", "index": 0, "delta": later}));
        vec![ApiBehavior::Stream(vec![
            send_step(message_start() + &call_block(0, ("a", "look", r#"{"name":"1"}"#))),
            StreamStep::WaitForFile(dir.join("look.1")),
            send_step(later + &open_call_block(1, ("b", "look", r#"{"name":"2"}"#), 9)),
        ])]
    });
    let ran = toolq.run(&["run"]).assert_exit(0);
    let (result_text, is_error) = single_result(&ran);
    assert!(
        is_error && result_text.contains("a piece of a call that was already complete"),
        "{result_text}"
    );
    assert_eq!(api.requests().len(), 1);
    assert_eq!(call_endings(&ran)[0], "look a ok");
}

/// The inputs of an agent's calls are shown as they arrive, like those of a streamed message.
#[test]
fn a_streaming_agents_inputs_are_shown_as_they_arrive() {
    let (toolq, _api) = streaming_agent("", |_| {
        let events = message_start()
            + &call_block(0, ("a", "change", r#"{"name":"1"}"#))
            + &message_end("tool_use");
        vec![
            ApiBehavior::Stream(vec![send_step(events)]),
            ApiBehavior::Stream(vec![send_step(
                message_start() + &text_block_events(0, "done") + &message_end("end_turn"),
            )]),
        ]
    });
    let ran = toolq.run(&["run", "--events", "events"]).assert_exit(0);
    let events = crate::agent::expert_fixture::read_events(&ran);
    let partial = events
        .iter()
        .filter(|event| event["type"] == "tool_partial");
    let partial: Vec<_> = partial
        .map(|event| {
            assert_eq!(event["agent_tool_use_id"], "toolu_0");
            assert_eq!(event["tool_use_id"], "a");
            event["state"]["params"].clone()
        })
        .collect();
    assert_eq!(
        partial.last().unwrap(),
        &json!({"name": "1"}),
        "{partial:?}"
    );
}
