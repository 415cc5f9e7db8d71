//! The response to an agent's request is read like a stream that is the input: each difference that two readers could
//! have, and how it's settled.

use serde_json::Value;

use crate::transcript::response::parse_response;
use crate::transcript::response_error::ResponseError;
use crate::transcript::stream::decoder::response::tests::complete_calls;
use crate::transcript::stream::{ResponseAssembler, StreamDecoder, StreamEvent, collect_turns};
use crate::types::{Api, Call};

/// The calls of a stream that is the input, or the error that aborts it.
fn read_as_input(text: &str) -> Result<String, String> {
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    stream.push(text.as_bytes());
    stream.finish();
    let (turns, error) = collect_turns(stream);
    let calls: Vec<&Call> = turns.iter().flat_map(|turn| &turn.calls).collect();
    error.map_or_else(|| Ok(describe_calls(&calls)), |error| Err(error.message))
}

/// The calls of the same stream as a response, or the error that aborts it. They are the same as in its body.
fn read_as_response(api: Api, text: &str, size: usize) -> Result<String, String> {
    let mut response = ResponseAssembler::new(api, 0);
    let mut calls = Vec::new();
    for bytes in text.as_bytes().chunks(size) {
        response.push(bytes).map_err(error_text)?;
        calls.extend(complete_calls(&mut response));
    }
    let body = response.finish().map_err(error_text)?;
    calls.extend(complete_calls(&mut response));
    let body = body.ok_or("the response isn't complete")?;
    let (_, turn) = parse_response(api, &body, 0).map_err(error_text)?;
    let calls: Vec<&Call> = calls.iter().collect();
    let turn_calls: Vec<&Call> = turn.calls.iter().collect();
    assert_eq!(
        describe_calls(&calls),
        describe_calls(&turn_calls),
        "{body}"
    );
    Ok(describe_calls(&calls))
}

fn error_text(error: ResponseError) -> String {
    match error {
        ResponseError::Unreadable(why) => why,
        ResponseError::Api { kind, message } => format!("{kind}: {message}"),
    }
}

fn describe_calls(calls: &[&Call]) -> String {
    let describe = |call: &&Call| match &call.input {
        Ok(input) => format!("{} {} {}", call.id, call.name, input.text()),
        Err(error) => format!("{} {} {error}", call.id, call.name),
    };
    calls.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn stream_text<T: AsRef<str>>(events: &[T]) -> String {
    let events = events.iter();
    let lines = events.map(|event| format!("data: {}\n\n", event.as_ref()));
    lines.collect()
}

/// Reads a stream as input and, in one piece and byte by byte, as a response. Returns what all of them agree on.
fn read_both_ways<T: AsRef<str>>(api: Api, events: &[T]) -> Result<String, String> {
    let text = stream_text(events);
    let as_input = read_as_input(&text);
    for size in [usize::MAX, 1] {
        match (&as_input, read_as_response(api, &text, size)) {
            (Ok(calls), Ok(other)) => assert_eq!(calls, &other, "{text}"),
            (Err(error), Err(other)) => assert!(other.starts_with(error), "{error}: {other}"),
            (_, other) => panic!("{as_input:?}, {other:?}: {text}"),
        }
    }
    as_input
}

/// Events of the Messages API, with its beginning and its end.
fn anthropic_message(events: &[&str]) -> Vec<String> {
    let start = r#"{"type":"message_start","message":{"model":"m"}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let all = [&[start], events, &[stop]].concat();
    all.into_iter().map(str::to_owned).collect()
}

fn call_start(index: &str, members: &str) -> String {
    format!(
        r#"{{"type":"content_block_start",{index}"content_block":{{"type":"tool_use",{members}}}}}"#
    )
}

fn input_piece(index: &str, piece: &str) -> String {
    let piece = Value::from(piece);
    format!(
        r#"{{"type":"content_block_delta",{index}"delta":{{"type":"input_json_delta","partial_json":{piece}}}}}"#
    )
}

/// A chunk of a chat completion with the id `id`.
fn chunk(id: &str, delta: &str, rest: &str) -> String {
    format!(r#"{{"id":"{id}","choices":[{{"index":0,"delta":{{{delta}}}{rest}}}]}}"#)
}

fn call_chunk(id: &str, call: &str) -> String {
    chunk(id, &format!(r#""tool_calls":[{{{call}}}]"#), "")
}

const CALL: &str = r#""index":0,"id":"a","function":{"name":"n","arguments":"{\"x\":1}"}"#;
const FINISH: &str = r#","finish_reason":"tool_calls""#;

#[test]
fn an_event_without_an_index_is_about_the_open_block() {
    let call = |id| call_start("", &format!(r#""id":"{id}","name":"n","input":{{}}"#));
    let (piece, stop) = (
        input_piece("", "{\"x\":1}"),
        r#"{"type":"content_block_stop"}"#,
    );
    let (first, second) = (call("a"), call("b"));
    let events = [&first, &piece, stop, &second, stop];
    let read = read_both_ways(Api::Anthropic, &anthropic_message(&events));
    assert_eq!(read.unwrap(), r#"a n {"x":1}, b n {}"#);
    // The piece could belong to either call.
    let events = [&*first, &second, &piece];
    let read = read_both_ways(Api::Anthropic, &anthropic_message(&events));
    assert!(read.unwrap_err().contains("no `index`"));
}

#[test]
fn an_event_outside_of_a_message_is_an_error() {
    let call = call_start(r#""index":0,"#, r#""id":"a","name":"n","input":{}"#);
    let read = read_both_ways(Api::Anthropic, &[call]);
    assert!(read.unwrap_err().contains("outside of a message"));
}

#[test]
fn an_input_that_is_missing_is_empty() {
    for input in [r#","input":null"#, ""] {
        let call = call_start(r#""index":0,"#, &format!(r#""id":"a","name":"n"{input}"#));
        let blank = input_piece(r#""index":0,"#, " ");
        let read = read_both_ways(Api::Anthropic, &anthropic_message(&[&call, &blank]));
        assert_eq!(read.unwrap(), "a n {}");
    }
}

#[test]
fn an_input_that_is_not_json_is_reported_as_such() {
    let call = call_start(r#""index":0,"#, r#""id":"a","name":"n","input":{}"#);
    for (piece, expected) in [
        ("{\"x\":", "a n the input is not valid JSON: EOF"),
        ("[1]", "a n the input is an array"),
    ] {
        let piece = input_piece(r#""index":0,"#, piece);
        let read = read_both_ways(Api::Anthropic, &anthropic_message(&[&call, &piece]));
        let calls = read.unwrap();
        assert!(calls.starts_with(expected), "{calls}");
    }
}

#[test]
fn a_late_piece_is_an_error_unless_it_is_whitespace() {
    let index = r#""index":0,"#;
    let call = call_start(index, r#""id":"a","name":"n","input":{}"#);
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let events = |late| {
        anthropic_message(&[
            &call,
            &input_piece(index, "{}"),
            stop,
            &input_piece(index, late),
        ])
    };
    let read = read_both_ways(Api::Anthropic, &events("\n"));
    assert_eq!(read.unwrap(), "a n {}");
    let read = read_both_ways(Api::Anthropic, &events("{}"));
    assert!(read.unwrap_err().contains("already complete"));
}

#[test]
fn a_duplicate_key_makes_a_call_invalid() {
    let call = call_start(
        r#""index":0,"#,
        r#""id":"a","id":"b","name":"n","input":{}"#,
    );
    let piece = input_piece(r#""index":0,"#, "{\"x\":1}");
    let read = read_both_ways(Api::Anthropic, &anthropic_message(&[&call, &piece]));
    assert!(read.unwrap().contains(r#"the key "id" appears twice"#));
    // In chunks it isn't certain which call they belong to.
    for call in [
        r#""index":0,"id":"a","id":"b","function":{"name":"n","arguments":"{}"}"#,
        r#""index":0,"id":"a","function":{"name":"n","arguments":"{}","name":"m"}"#,
        r#""index":0,"id":"a","x":1,"x":2,"function":{"name":"n","arguments":"{}"}"#,
    ] {
        let events = [call_chunk("c", call), chunk("c", "", FINISH)];
        let read = read_both_ways(Api::OpenAiChat, &events);
        assert!(read.unwrap_err().contains("appears twice"), "{call}");
    }
}

#[test]
fn the_id_of_a_chunk_may_change() {
    let more = r#""index":0,"function":{"arguments":" "}"#;
    let events = [
        chunk("1", r#""role":"assistant""#, ""),
        call_chunk("2", CALL),
        call_chunk("", more),
        chunk("3", "", FINISH),
        chunk("4", "", ""),
        "[DONE]".to_owned(),
    ];
    let read = read_both_ways(Api::OpenAiChat, &events);
    assert_eq!(read.unwrap(), r#"a n {"x":1}"#);
}

/// In an input, streams may follow each other, so the first one was cut off. The response to a request is one message.
#[test]
fn another_id_with_a_role_begins_another_message_only_in_an_input() {
    let role = chunk("2", r#""role":"assistant""#, "");
    let events = [call_chunk("1", CALL), role, chunk("2", "", FINISH)];
    let text = stream_text(&events);
    let error = read_as_input(&text).unwrap_err();
    assert!(error.contains("another message begins"), "{error}");
    let calls = read_as_response(Api::OpenAiChat, &text, 16);
    assert_eq!(calls.unwrap(), r#"a n {"x":1}"#);
}

#[test]
fn done_ends_a_message_without_a_finish_reason() {
    let events = [call_chunk("1", CALL), "[DONE]".to_owned()];
    let read = read_both_ways(Api::OpenAiChat, &events);
    assert_eq!(read.unwrap(), r#"a n {"x":1}"#);
    // Without it, the message was cut off.
    for events in [&events[..1], &events[1..]] {
        let text = stream_text(events);
        assert!(read_as_input(&text).is_err());
        let error = read_as_response(Api::OpenAiChat, &text, 16).unwrap_err();
        assert_eq!(error, "the response isn't complete");
    }
}

#[test]
fn only_the_first_choice_counts() {
    let other = call_chunk("1", CALL).replace("\"index\":0,\"delta\"", "\"index\":1,\"delta\"");
    let other = other.replace("\"a\"", "\"z\"");
    let events = [
        other.clone(),
        call_chunk("1", CALL),
        other,
        chunk("1", "", FINISH),
    ];
    let read = read_both_ways(Api::OpenAiChat, &events);
    assert_eq!(read.unwrap(), r#"a n {"x":1}"#);
}

#[test]
fn a_legacy_function_call_is_an_error() {
    let legacy = chunk(
        "1",
        r#""function_call":{"name":"n","arguments":"{}"}"#,
        FINISH,
    );
    let read = read_both_ways(Api::OpenAiChat, &[legacy]);
    assert!(read.unwrap_err().contains("was replaced by `tool_calls`"));
}

#[test]
fn pieces_of_calls_may_alternate() {
    let begin = |index: usize, id: &str| {
        format!(r#""index":{index},"id":"{id}","function":{{"name":"n","arguments":""}}"#)
    };
    let more = |index: usize, piece: &str| {
        let piece = Value::from(piece);
        format!(r#""index":{index},"function":{{"arguments":{piece}}}"#)
    };
    let calls = [
        begin(0, "a"),
        begin(1, "b"),
        more(0, "{\"x\":"),
        more(1, "{}"),
        more(0, "1}"),
    ];
    let mut events: Vec<String> = calls.iter().map(|call| call_chunk("1", call)).collect();
    events.push(chunk("1", "", FINISH));
    let read = read_both_ways(Api::OpenAiChat, &events);
    assert_eq!(read.unwrap(), r#"a n {"x":1}, b n {}"#);
}

/// A call without an id gets the same one as in the equivalent document.
#[test]
fn a_generated_id_is_that_of_the_document() {
    let input = "{\n  \"x\": [1, \"\u{2028}\"]\n}";
    let piece = input_piece(r#""index":0,"#, input);
    let call = call_start(r#""index":0,"#, r#""name":"n","input":{}"#);
    let mut ids = Vec::new();
    let text = stream_text(&anthropic_message(&[&call, &piece]));
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    stream.push(text.as_bytes());
    let mut response = ResponseAssembler::new(Api::Anthropic, 0);
    response.push(text.as_bytes()).unwrap();
    let body = response.finish().unwrap().unwrap();
    ids.extend(stream.filter_map(|event| match event {
        StreamEvent::CallComplete(call) => Some(call.id),
        _ => None,
    }));
    ids.extend(
        complete_calls(&mut response)
            .into_iter()
            .map(|call| call.id),
    );
    let document = format!(
        r#"{{"type":"message","role":"assistant","content":[{{"name":"n","type":"tool_use","input":{input}}}]}}"#
    );
    for body in [body, document] {
        ids.push(
            parse_response(Api::Anthropic, &body, 0).unwrap().1.calls[0]
                .id
                .clone(),
        );
    }
    assert!(
        ids.iter()
            .all(|id| id.starts_with("toolq_") && *id == ids[0]),
        "{ids:?}"
    );
}

/// An input reports what an API says about an error, and an agent decides by its kind.
#[test]
fn an_api_error_is_the_same_wherever_it_stands() {
    let failed = r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"code":"upstream","message":"gone"}}]}"#;
    for (api, start, event, kind, message) in [
        (
            Api::Anthropic,
            r#"{"type":"message_start","message":{}}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
            "overloaded_error",
            "busy",
        ),
        (
            Api::Anthropic,
            r#"{"type":"message_start","message":{}}"#,
            r#"{"type":"error","code":"api_error","message":"busy"}"#,
            "api_error",
            "busy",
        ),
        (
            Api::OpenAiChat,
            &chunk("1", "", ""),
            r#"{"error":{"code":"upstream","message":"gone"}}"#,
            "upstream",
            "gone",
        ),
        (
            Api::OpenAiChat,
            &chunk("1", "", ""),
            failed,
            "upstream",
            "gone",
        ),
    ] {
        let text = stream_text(&[start, event]);
        let error = read_as_input(&text).unwrap_err();
        assert!(
            error.ends_with(&format!("with an error ({kind}: {message})")),
            "{error}"
        );
        let error = read_as_response(api, &text, 1).unwrap_err();
        assert_eq!(error, format!("{kind}: {message}"));
    }
}

/// Nothing that follows the end of a response matters, in the same read or a later one, unless it's a call. An input may
/// have another message there.
#[test]
fn what_follows_the_end_of_a_response_is_ignored() {
    let call = call_start(r#""index":0,"#, r#""id":"a","name":"n","input":{}"#);
    let anthropic = anthropic_message(&[&call]);
    let chat = [call_chunk("1", CALL), chunk("1", "", FINISH)];
    let error = r#"{"error":{"type":"overloaded_error"}}"#;
    for (api, message) in [(Api::Anthropic, &anthropic[..]), (Api::OpenAiChat, &chat)] {
        for garbage in [
            "data: {]\n\n",
            "data: \u{7}\n\n",
            "data: [1]\n\n",
            &stream_text(&[error]),
            "data: {\"c",
        ] {
            let text = stream_text(message) + garbage;
            assert!(read_as_input(&text).is_err(), "{garbage}");
            for size in [usize::MAX, 7, 1] {
                let calls = read_as_response(api, &text, size).unwrap();
                assert!(calls.starts_with("a n "), "{calls}");
            }
        }
    }
    // No event of a message that has ended may be taken for the next one's.
    let text = stream_text(&[&anthropic[..], &anthropic].concat());
    for size in [usize::MAX, 1] {
        assert_eq!(
            read_as_response(Api::Anthropic, &text, size).unwrap(),
            "a n {}"
        );
    }
}

#[test]
fn a_call_after_the_end_of_its_message_is_an_error() {
    let late = call_chunk("1", &CALL.replace("\"a\"", "\"b\""));
    let events = [call_chunk("1", CALL), chunk("1", "", FINISH), late];
    let read = read_both_ways(Api::OpenAiChat, &events);
    assert!(
        read.unwrap_err()
            .contains("a call after the end of its message")
    );
}

/// The stop reason that was reported is kept, even if a later event lacks one.
#[test]
fn a_stop_reason_is_kept() {
    let delta = |reason: &str| {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{reason}}},"usage":{{}}}}"#)
    };
    let events = anthropic_message(&[&delta("\"refusal\""), &delta("null")]);
    let mut response = ResponseAssembler::new(Api::Anthropic, 0);
    response.push(stream_text(&events).as_bytes()).unwrap();
    let body = response.finish().unwrap().unwrap();
    assert!(body.contains(r#""stop_reason":"refusal""#), "{body}");
}
