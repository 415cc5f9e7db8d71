mod faithful;

use super::*;
use serde_json::Value;

use crate::transcript::response::response;
use crate::types::{Call, Turn};

fn assembled(api: Api, events: &[&str], size: usize) -> Result<Option<String>, ResponseFault> {
    let events = events
        .iter()
        .map(|event| format!("event: x\r\ndata: {event}\r\n\r\n"));
    let text = events.collect::<Vec<_>>().concat();
    let mut assembly = Assembly::new(api);
    for bytes in text.as_bytes().chunks(size) {
        assembly.push(bytes)?;
    }
    assembly.body()
}

#[test]
fn a_stream_is_the_answer_that_it_adds_up_to() {
    let events = [
        r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Sö"}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"."}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"n","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\": 1"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":".50}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    for size in [1, 7, 4096] {
        let body = assembled(Api::Anthropic, &events, size).unwrap().unwrap();
        let (answer, turn) = response(Api::Anthropic, &body, 0).unwrap();
        assert_eq!(
            (
                answer.text.as_str(),
                answer.usage.0.unwrap().input,
                answer.usage.0.unwrap().output
            ),
            ("Sö.", 7, 9)
        );
        assert_eq!(
            turn.calls[0].input.as_ref().unwrap().text(),
            r#"{"x": 1.50}"#
        );
    }
    // One that breaks off is no answer.
    assert_eq!(assembled(Api::Anthropic, &events[..9], 64), Ok(None));
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let broken = assembled(Api::Anthropic, &[events[0], error], 64);
    assert!(matches!(broken, Err(ResponseFault::Error { kind, .. }) if kind == "overloaded_error"));
}

#[test]
fn chat_completions_come_in_chunks() {
    let events = [
        r#"{"model":"g","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"n","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"b","function":{"name":"n","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}"#,
        "[DONE]",
    ];
    let body = assembled(Api::OpenAiChat, &events, 16).unwrap().unwrap();
    let (answer, turn) = response(Api::OpenAiChat, &body, 0).unwrap();
    let usage = answer.usage.0.unwrap();
    assert_eq!((usage.input, usage.output), (5, 6));
    let calls: Vec<(&str, &str)> = turn
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.input.as_ref().unwrap().text()))
        .collect();
    assert_eq!(calls, [("a", r#"{"x":1}"#), ("b", "{}")]);
}

/// The calls that come out before the end, each with the number of the event behind which it did.
fn early(api: Api, events: &[&str]) -> (Vec<(usize, Call)>, Vec<Call>, Turn) {
    let mut assembly = Assembly::new(api);
    let mut before = Vec::new();
    for (at, event) in events.iter().enumerate() {
        assembly
            .push(format!("data: {event}\n\n").as_bytes())
            .unwrap();
        before.extend(std::iter::from_fn(|| assembly.next_call(7)).map(|call| (at, call)));
    }
    let body = assembly.body().unwrap().unwrap();
    let after = std::iter::from_fn(|| assembly.next_call(7)).collect();
    assert_eq!(assembly.abandon(7).len(), 0);
    (before, after, response(api, &body, 7).unwrap().1)
}

fn all_of(before: Vec<(usize, Call)>, after: Vec<Call>) -> String {
    let calls = before.into_iter().map(|(_, call)| call).chain(after);
    format!("{:?}", calls.collect::<Vec<_>>())
}

/// FAULTS 17: a call is out when its block stops, and is the one that the whole answer has.
#[test]
fn calls_come_out_as_their_blocks_stop() {
    let events = [
        r#"{"type":"message_start","message":{"model":"m"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n","input":{}}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\": 1.50}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"no id","input":{"y":1}}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"b","name":"n","input":{}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let (before, after, turn) = early(Api::Anthropic, &events);
    let places: Vec<(usize, usize)> = before
        .iter()
        .map(|(at, call)| (*at, call.position))
        .collect();
    assert_eq!(places, [(5, 0), (7, 1)]);
    assert_eq!(all_of(before, after), format!("{:?}", turn.calls));
    // A piece that comes behind the stop is not overlooked.
    let mut assembly = Assembly::new(Api::Anthropic);
    let late = [events[1], events[4], events[5], events[4]];
    let late = late.map(|event| format!("data: {event}\n\n")).concat();
    let Err(ResponseFault::Strange(why)) = assembly.push(late.as_bytes()) else {
        panic!("a call has changed that somebody may have");
    };
    assert!(why.contains("whole already"), "{why}");
}

/// Of chat completions a call is whole when the next one begins. Servers that send the calls in turns, repeat names or send
/// objects are understood at the end at the latest.
#[test]
fn calls_of_chat_completions_come_out_as_the_next_begins() {
    let chunk = |calls: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{calls}]}}}}]}}"#)
    };
    let begin = |index: usize, id: &str, arguments: &str| {
        let arguments = Value::from(arguments);
        chunk(&format!(
            r#"{{"index":{index},"id":"{id}","function":{{"name":"n","arguments":{arguments}}}}}"#
        ))
    };
    let more = |index: usize, arguments: &str| {
        let arguments = Value::from(arguments);
        chunk(&format!(
            r#"{{"index":{index},"function":{{"name":"n","arguments":{arguments}}}}}"#
        ))
    };
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned();
    let object = chunk(r#"{"id":"c","function":{"name":"n","arguments":{"x":3}}}"#);
    for (events, out) in [
        (
            vec![
                begin(0, "a", ""),
                more(0, "{\"x\":"),
                more(0, "1}"),
                begin(1, "b", "{}"),
                object,
                end.clone(),
            ],
            vec![(3, 0), (4, 1)],
        ),
        (
            vec![
                begin(0, "a", ""),
                begin(1, "b", ""),
                more(0, "{}"),
                more(1, "{\"x\":2}"),
                end,
            ],
            vec![],
        ),
    ] {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (before, after, turn) = early(Api::OpenAiChat, &events);
        let places: Vec<(usize, usize)> = before
            .iter()
            .map(|(at, call)| (*at, call.position))
            .collect();
        assert_eq!(places, out);
        let all = all_of(before, after);
        assert_eq!(all, format!("{:?}", turn.calls));
        assert!(
            turn.calls
                .iter()
                .all(|call| call.name == "n" && call.input.is_ok()),
            "{all}"
        );
    }
}

/// What was cut in the middle of an event broke off; behind the end nothing is missed.
#[test]
fn a_stream_may_be_cut_anywhere() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n";
    for (rest, complete) in [
        ("data: {\"type\":\"mess", false),
        ("data: {\"type\":\"message_stop\"}\n\ndata: {\"ty", true),
        ("data: {\"type\":\"message_stop\"}", true),
    ] {
        let mut assembly = Assembly::new(Api::Anthropic);
        assembly.push(format!("{start}{rest}").as_bytes()).unwrap();
        assert_eq!(assembly.body().unwrap().is_some(), complete, "{rest}");
    }
}
