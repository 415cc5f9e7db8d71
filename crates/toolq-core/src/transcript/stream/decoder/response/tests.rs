mod same_as_input;
mod same_as_unstreamed;

use super::*;
use serde_json::Value;

use crate::transcript::response::parse_response;
use crate::types::Turn;

fn assemble(api: Api, events: &[&str], size: usize) -> Result<Option<String>, ResponseError> {
    let events = events
        .iter()
        .map(|event| format!("event: x\r\ndata: {event}\r\n\r\n"));
    let text = events.collect::<Vec<_>>().concat();
    let mut assembly = ResponseAssembler::new(api, 7);
    for bytes in text.as_bytes().chunks(size) {
        assembly.push(bytes)?;
    }
    assembly.finish()
}

#[test]
fn a_stream_assembles_into_the_whole_response() {
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
        let body = assemble(Api::Anthropic, &events, size).unwrap().unwrap();
        let (response, turn) = parse_response(Api::Anthropic, &body, 0).unwrap();
        assert_eq!(
            (
                response.text.as_str(),
                response.usage.0.unwrap().input,
                response.usage.0.unwrap().output
            ),
            ("Sö.", 7, 9)
        );
        assert_eq!(
            turn.calls[0].input.as_ref().unwrap().text(),
            r#"{"x": 1.50}"#
        );
    }
    // An aborted stream has no body.
    assert_eq!(assemble(Api::Anthropic, &events[..9], 64), Ok(None));
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let broken = assemble(Api::Anthropic, &[events[0], error], 64);
    assert!(matches!(broken, Err(ResponseError::Api { kind, .. }) if kind == "overloaded_error"));
}

#[test]
fn chat_completion_chunks_assemble_into_a_response() {
    let events = [
        r#"{"model":"g","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"n","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"b","function":{"name":"n","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}"#,
        "[DONE]",
    ];
    let body = assemble(Api::OpenAiChat, &events, 16).unwrap().unwrap();
    let (response, turn) = parse_response(Api::OpenAiChat, &body, 0).unwrap();
    let usage = response.usage.0.unwrap();
    assert_eq!((usage.input, usage.output), (5, 6));
    let calls: Vec<(&str, &str)> = turn
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.input.as_ref().unwrap().text()))
        .collect();
    assert_eq!(calls, [("a", r#"{"x":1}"#), ("b", "{}")]);
}

/// Returns the calls that are available before the end, each with the number of the event after which it was; those
/// that are available only at the end; and the turn of the complete body.
fn assemble_with_early_calls(api: Api, events: &[&str]) -> (Vec<(usize, Call)>, Vec<Call>, Turn) {
    let mut assembly = ResponseAssembler::new(api, 7);
    let mut before = Vec::new();
    for (at, event) in events.iter().enumerate() {
        assembly
            .push(format!("data: {event}\n\n").as_bytes())
            .unwrap();
        let calls = complete_calls(&mut assembly);
        before.extend(calls.into_iter().map(|call| (at, call)));
    }
    let body = assembly.finish().unwrap().unwrap();
    let after = complete_calls(&mut assembly);
    assert_eq!(assembly.abort().len(), 0);
    (before, after, parse_response(api, &body, 7).unwrap().1)
}

/// Returns the calls that have become complete since the last time.
fn complete_calls(assembly: &mut ResponseAssembler) -> Vec<Call> {
    let events = std::iter::from_fn(|| assembly.next_event());
    let calls = events.filter_map(|event| match event {
        StreamEvent::CallComplete(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

fn debug_calls(before: Vec<(usize, Call)>, after: Vec<Call>) -> String {
    let calls = before.into_iter().map(|(_, call)| call).chain(after);
    format!("{:?}", calls.collect::<Vec<_>>())
}

/// A call is available when its block stops, and is the same as in the complete response.
#[test]
fn calls_are_emitted_when_their_blocks_stop() {
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
    let (before, after, turn) = assemble_with_early_calls(Api::Anthropic, &events);
    let positions: Vec<(usize, usize)> = before
        .iter()
        .map(|(at, call)| (*at, call.position))
        .collect();
    assert_eq!(positions, [(5, 0), (7, 1)]);
    assert_eq!(debug_calls(before, after), format!("{:?}", turn.calls));
    // A piece after the stop isn't ignored.
    let mut assembly = ResponseAssembler::new(Api::Anthropic, 7);
    let late = [events[0], events[1], events[4], events[5], events[4]];
    let late = late.map(|event| format!("data: {event}\n\n")).concat();
    let Err(ResponseError::Unreadable(why)) = assembly.push(late.as_bytes()) else {
        panic!("a call changed after it was handed out");
    };
    assert!(why.contains("already complete"), "{why}");
}

/// In chat completions, a call is complete when the next one starts. Calls of servers that alternate between calls,
/// repeat names, or send objects are available at the end at the latest.
#[test]
fn chat_completion_calls_are_emitted_when_the_next_begins() {
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
    for (events, expected) in [
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
        let (before, after, turn) = assemble_with_early_calls(Api::OpenAiChat, &events);
        let positions: Vec<(usize, usize)> = before
            .iter()
            .map(|(at, call)| (*at, call.position))
            .collect();
        assert_eq!(positions, expected);
        let all = debug_calls(before, after);
        assert_eq!(all, format!("{:?}", turn.calls));
        assert!(
            turn.calls
                .iter()
                .all(|call| &*call.name == "n" && call.input.is_ok()),
            "{all}"
        );
    }
}

/// A stream cut before its last event is aborted. A cut after that event doesn't matter.
#[test]
fn a_stream_may_be_cut_anywhere() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n";
    for (rest, complete) in [
        ("data: {\"type\":\"mess", false),
        ("data: {\"type\":\"message_stop\"}\n\ndata: {\"ty", true),
        ("data: {\"type\":\"message_stop\"}", true),
    ] {
        let mut assembly = ResponseAssembler::new(Api::Anthropic, 7);
        assembly.push(format!("{start}{rest}").as_bytes()).unwrap();
        assert_eq!(assembly.finish().unwrap().is_some(), complete, "{rest}");
    }
}
