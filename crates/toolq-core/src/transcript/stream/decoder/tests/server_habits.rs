//! Streams as servers send them that keep to the APIs more or less.

use serde_json::Value;

use crate::transcript::response::parse_response;
use crate::transcript::stream::{StreamDecoder, StreamEvent, collect_turns};
use crate::types::{Api, Call};

fn read_pieces(text: &[u8], size: usize) -> Result<String, String> {
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    for piece in text.chunks(size) {
        stream.push(piece);
    }
    stream.finish();
    let (turns, error) = collect_turns(stream);
    let calls: Vec<&Call> = turns.iter().flat_map(|turn| &turn.calls).collect();
    error.map_or_else(|| Ok(describe_calls(&calls)), |error| Err(error.message))
}

fn describe_calls(calls: &[&Call]) -> String {
    let describe = |call: &&Call| match &call.input {
        Ok(input) => format!("{} {} {}", call.id, call.name, input.text()),
        Err(error) => format!("{} {} {error}", call.id, call.name),
    };
    calls.iter().map(describe).collect::<Vec<_>>().join(", ")
}

pub(super) fn stream_text<T: AsRef<str>>(events: &[T]) -> String {
    let events = events.iter();
    let lines = events.map(|event| format!("data: {}\n\n", event.as_ref()));
    lines.collect()
}

/// Reads the events of a stream, in one piece and byte by byte. Returns its calls, or the error that aborts it.
pub(super) fn read_events<T: AsRef<str>>(events: &[T]) -> Result<String, String> {
    let text = stream_text(events);
    let whole = read_pieces(text.as_bytes(), usize::MAX);
    assert_eq!(read_pieces(text.as_bytes(), 1), whole, "{text}");
    whole
}

/// Events of the Messages API, with its beginning and its end.
pub(super) fn anthropic_message(events: &[&str]) -> Vec<String> {
    let start = r#"{"type":"message_start","message":{"model":"m"}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let all = [&[start], events, &[stop]].concat();
    all.into_iter().map(str::to_owned).collect()
}

pub(super) fn call_start(index: &str, members: &str) -> String {
    format!(
        r#"{{"type":"content_block_start",{index}"content_block":{{"type":"tool_use",{members}}}}}"#
    )
}

pub(super) fn input_piece(index: &str, piece: &str) -> String {
    let piece = Value::from(piece);
    format!(
        r#"{{"type":"content_block_delta",{index}"delta":{{"type":"input_json_delta","partial_json":{piece}}}}}"#
    )
}

/// A chunk of a chat completion with the id `id`.
pub(super) fn chunk(id: &str, delta: &str, rest: &str) -> String {
    format!(r#"{{"id":"{id}","choices":[{{"index":0,"delta":{{{delta}}}{rest}}}]}}"#)
}

pub(super) fn call_chunk(id: &str, call: &str) -> String {
    chunk(id, &format!(r#""tool_calls":[{{{call}}}]"#), "")
}

const CALL: &str = r#""index":0,"id":"a","function":{"name":"n","arguments":"{\"x\":1}"}"#;
pub(super) const FINISH: &str = r#","finish_reason":"tool_calls""#;

#[test]
fn an_event_without_an_index_is_about_the_open_block() {
    let call = |id| call_start("", &format!(r#""id":"{id}","name":"n","input":{{}}"#));
    let (piece, stop) = (
        input_piece("", "{\"x\":1}"),
        r#"{"type":"content_block_stop"}"#,
    );
    let (first, second) = (call("a"), call("b"));
    let events = [&first, &piece, stop, &second, stop];
    let read = read_events(&anthropic_message(&events));
    assert_eq!(read.unwrap(), r#"a n {"x":1}, b n {}"#);
    // The piece could belong to either call.
    let events = [&*first, &second, &piece];
    let read = read_events(&anthropic_message(&events));
    assert!(read.unwrap_err().contains("belongs to no block"));
}

#[test]
fn an_event_outside_of_a_message_is_an_error() {
    let call = call_start(r#""index":0,"#, r#""id":"a","name":"n","input":{}"#);
    let read = read_events(&[call]);
    assert!(read.unwrap_err().contains("outside of a message"));
}

#[test]
fn an_input_that_is_missing_is_empty() {
    for input in [r#","input":null"#, ""] {
        let call = call_start(r#""index":0,"#, &format!(r#""id":"a","name":"n"{input}"#));
        let blank = input_piece(r#""index":0,"#, " ");
        let read = read_events(&anthropic_message(&[&call, &blank]));
        assert_eq!(read.unwrap(), "a n {}");
    }
}

#[test]
fn an_input_that_is_not_json_is_reported_as_such() {
    let call = call_start(r#""index":0,"#, r#""id":"a","name":"n","input":{}"#);
    let read = |piece| {
        let piece = input_piece(r#""index":0,"#, piece);
        read_events(&anthropic_message(&[&call, &piece]))
    };
    let calls = read("[1]").unwrap();
    assert!(calls.starts_with("a n the input is an array"), "{calls}");
    let calls = read("{x}").unwrap();
    assert!(
        calls.starts_with("a n the input is not valid JSON"),
        "{calls}"
    );
    let error = read("{\"x\":").unwrap_err();
    assert!(error.ends_with("its input never came whole"), "{error}");
}

/// A piece may be in the wrong input only if another block was open.
#[test]
fn a_broken_input_concerns_other_calls_only_if_they_arrived_at_the_same_time() {
    let starts =
        ["a", "b"].map(|id| call_start(&index_of(id), &format!(r#""id":"{id}","name":"n""#)));
    let stops = ["a", "b"].map(|id| {
        let index = index_of(id);
        format!(r#"{{"type":"content_block_stop",{index}"x":0}}"#)
    });
    let piece = |id, piece| input_piece(&index_of(id), piece);
    for broken in [r#"{"x":"#, "{x}", "{}}", "{}{}"] {
        let (first, second) = (piece("a", broken), piece("b", "{}"));
        let apart = [
            &starts[0], &first, &stops[0], &starts[1], &second, &stops[1],
        ];
        let calls = read_events(&anthropic_message(&apart.map(String::as_str))).unwrap();
        assert!(calls.contains("not valid JSON"), "{calls}");
        assert!(calls.ends_with(", b n {}"), "{calls}");
        let mixed = [
            &starts[0], &starts[1], &second, &stops[1], &first, &stops[0],
        ];
        let error = read_events(&anthropic_message(&mixed.map(String::as_str)));
        assert!(
            error.unwrap_err().starts_with("the call of `n`"),
            "{broken}"
        );
    }
}

/// The first call's pieces name another index, under which two more calls follow.
#[test]
fn a_call_whose_pieces_went_elsewhere_does_not_run() {
    let chunk = |call: String| {
        format!(
            r#"{{"id":"m","choices":[{{"index":0,"delta":{{"role":"assistant","tool_calls":[{call}]}}}}]}}"#
        )
    };
    let start = |index: u8, id: &str| {
        let function = format!(r#"{{"name":"{id}_tool","arguments":""}}"#);
        chunk(format!(
            r#"{{"index":{index},"id":"{id}","function":{function}}}"#
        ))
    };
    let piece = |x: u8| {
        chunk(format!(
            r#"{{"index":0,"function":{{"arguments":"{{\"x\":{x}}}"}}}}"#
        ))
    };
    let end = r#"{"id":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    for calls in [
        vec![start(2, "a"), piece(1), start(0, "b")],
        vec![
            start(2, "a"),
            piece(1),
            start(0, "b"),
            piece(2),
            start(0, "c"),
            piece(3),
        ],
    ] {
        let events = [calls, vec![end.to_owned()]].concat();
        let error = read_events(&events).unwrap_err();
        assert!(error.starts_with("the call of `a_tool`"), "{error}");
    }
}

/// An item says twice which call it is.
#[test]
fn an_item_with_two_ids_of_calls_runs_for_neither() {
    let item = |call_id: &str, arguments: &str| {
        let call = format!(r#""call_id":"{call_id}","name":"n","arguments":"{arguments}""#);
        format!(r#"{{"type":"function_call","id":"i",{call}}}"#)
    };
    let event = |kind: &str, members: String| format!(r#"{{"type":"response.{kind}",{members}}}"#);
    let added = event("output_item.added", format!(r#""item":{}"#, item("a", "")));
    let done = |id| event("output_item.done", format!(r#""item":{}"#, item(id, "{}")));
    let input = event(
        "function_call_arguments.done",
        r#""item_id":"i","arguments":"{}""#.to_owned(),
    );
    let completed = |id| {
        let output = item(id, "{}");
        event(
            "completed",
            format!(r#""response":{{"output":[{output}]}}"#),
        )
    };
    assert_eq!(
        read_events(&[added.clone(), done("a"), completed("a")]).unwrap(),
        "a n {}"
    );
    for events in [
        vec![added.clone(), done("b"), completed("b")],
        vec![added.clone(), input, completed("b")],
        vec![added, done("a"), completed("b")],
    ] {
        let error = read_events(&events).unwrap_err();
        assert!(error.contains("two different ids"), "{error}");
    }
}

fn index_of(id: &str) -> String {
    format!(r#""index":{},"#, u8::from(id == "b"))
}

#[test]
fn a_late_piece_is_an_error_unless_it_is_white_space() {
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
    let read = read_events(&events("\n"));
    assert_eq!(read.unwrap(), "a n {}");
    let read = read_events(&events("{}"));
    assert!(read.unwrap_err().ends_with("arrives after its end"));
}

#[test]
fn a_duplicate_key_makes_a_call_invalid() {
    let call = call_start(
        r#""index":0,"#,
        r#""id":"a","id":"b","name":"n","input":{}"#,
    );
    let piece = input_piece(r#""index":0,"#, "{\"x\":1}");
    let read = read_events(&anthropic_message(&[&call, &piece]));
    assert!(read.unwrap().contains(r#"the key "id" appears twice"#));
    // In chunks it isn't certain which call they belong to.
    for call in [
        r#""index":0,"id":"a","id":"b","function":{"name":"n","arguments":"{}"}"#,
        r#""index":0,"id":"a","function":{"name":"n","arguments":"{}","name":"m"}"#,
        r#""index":0,"id":"a","x":1,"x":2,"function":{"name":"n","arguments":"{}"}"#,
    ] {
        let events = [call_chunk("c", call), chunk("c", "", FINISH)];
        let read = read_events(&events);
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
    let read = read_events(&events);
    assert_eq!(read.unwrap(), r#"a n {"x":1}"#);
}

/// Streams may follow each other, so the first one was cut off.
#[test]
fn another_id_with_a_role_begins_another_message() {
    let role = chunk("2", r#""role":"assistant""#, "");
    let events = [call_chunk("1", CALL), role, chunk("2", "", FINISH)];
    let error = read_events(&events).unwrap_err();
    assert!(error.contains("another message begins"), "{error}");
}

#[test]
fn done_ends_a_message_without_a_finish_reason() {
    let events = [call_chunk("1", CALL), "[DONE]".to_owned()];
    let read = read_events(&events);
    assert_eq!(read.unwrap(), r#"a n {"x":1}"#);
    // Without it, the message was cut off.
    for events in [&events[..1], &events[1..]] {
        assert!(read_events(events).is_err());
    }
}

/// The choices of a response are alternatives.
#[test]
fn calls_may_stand_in_any_one_choice() {
    let in_second = |chunk: &str| chunk.replace("\"index\":0,\"delta\"", "\"index\":1,\"delta\"");
    let (call, finish) = (call_chunk("1", CALL), chunk("1", "", FINISH));
    let text = chunk("1", r#""content":"hm""#, r#","finish_reason":"stop""#);
    let done = "[DONE]".to_owned();
    for events in [
        [
            in_second(&call),
            text.clone(),
            in_second(&finish),
            done.clone(),
        ],
        [
            text.clone(),
            in_second(&call),
            in_second(&finish),
            done.clone(),
        ],
        [call.clone(), in_second(&text), finish.clone(), done.clone()],
        [in_second(&text), call.clone(), finish.clone(), done.clone()],
    ] {
        assert_eq!(
            read_events(&events).unwrap(),
            r#"a n {"x":1}"#,
            "{events:?}"
        );
    }
    let events = [call.clone(), in_second(&call), finish, done];
    let error = read_events(&events).unwrap_err();
    assert!(error.contains("alternatives"), "{error}");
}

#[test]
fn a_legacy_function_call_is_an_error() {
    let legacy = chunk(
        "1",
        r#""function_call":{"name":"n","arguments":"{}"}"#,
        FINISH,
    );
    let read = read_events(&[legacy]);
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
    let read = read_events(&events);
    assert_eq!(read.unwrap(), r#"a n {"x":1}, b n {}"#);
}

/// Arguments may come before the name of their call, if they are whole: a part of them may be another call's, under a wrong index.
/// So may what is behind the end of an input, and arguments before two calls under one index.
#[test]
fn pieces_that_may_be_those_of_another_call_break_the_message() {
    let named = |id: &str| format!(r#""index":1,"id":"{id}","function":{{"name":"n"}}"#);
    let piece = |text: &str| {
        let text = Value::from(text);
        format!(r#""index":1,"function":{{"arguments":{text}}}"#)
    };
    let read = |calls: &[String]| {
        let calls = calls.iter().map(|call| call_chunk("c", call));
        let end = chunk("c", "", FINISH);
        read_events(&calls.chain([end]).collect::<Vec<_>>())
    };
    assert_eq!(read(&[piece("{}"), named("b")]).unwrap(), "b n {}");
    for calls in [
        vec![piece("{}"), named("b"), named("c"), piece("{}")],
        vec![piece("{\"to\":"), named("b"), piece("{}"), piece("}")],
        vec![named("b"), piece("{}"), piece("}")],
    ] {
        let error = read(&calls).unwrap_err();
        assert!(error.starts_with("the call of `"), "{error}");
    }
}

/// A call without an id gets the same one as in the equivalent document.
#[test]
fn a_generated_id_is_that_of_the_document() {
    let input = "{\n  \"x\": [1, \"\u{2028}\"]\n}";
    let piece = input_piece(r#""index":0,"#, input);
    let call = call_start(r#""index":0,"#, r#""name":"n","input":{}"#);
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    stream.push(stream_text(&anthropic_message(&[&call, &piece])).as_bytes());
    let streamed = stream.find_map(|event| match event {
        StreamEvent::CallComplete(call) => Some(call.id),
        _ => None,
    });
    let document = format!(
        r#"{{"type":"message","role":"assistant","content":[{{"name":"n","type":"tool_use","input":{input}}}]}}"#
    );
    let (_, turn) = parse_response(Api::Anthropic, &document, 0).unwrap();
    let id = &turn.calls[0].id;
    assert!(id.starts_with("toolq_"), "{id}");
    assert_eq!(streamed.as_ref(), Some(id));
}

#[test]
fn an_api_error_is_the_same_wherever_it_stands() {
    let failed = r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"code":"upstream","message":"gone"}}]}"#;
    for (start, event, kind, message) in [
        (
            r#"{"type":"message_start","message":{}}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
            "overloaded_error",
            "busy",
        ),
        (
            r#"{"type":"message_start","message":{}}"#,
            r#"{"type":"error","code":"api_error","message":"busy"}"#,
            "api_error",
            "busy",
        ),
        (
            &chunk("1", "", ""),
            r#"{"error":{"code":"upstream","message":"gone"}}"#,
            "upstream",
            "gone",
        ),
        (&chunk("1", "", ""), failed, "upstream", "gone"),
    ] {
        let error = read_events(&[start, event]).unwrap_err();
        assert!(
            error.ends_with(&format!("with an error ({kind}: {message})")),
            "{error}"
        );
    }
}

/// Its beginning may be missing, or everything but its end.
#[test]
fn a_response_may_lack_its_beginning() {
    let item = r#"{"type":"function_call","call_id":"a","name":"n","arguments":"{\"x\":1}"}"#;
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let end = |output: &str| {
        format!(r#"{{"type":"response.completed","response":{{"id":"r","output":[{output}]}}}}"#)
    };
    for events in [
        vec![end(item)],
        vec![done.clone(), end("")],
        vec![done.clone(), end(item)],
    ] {
        assert_eq!(
            read_events(&events).unwrap(),
            r#"a n {"x":1}"#,
            "{events:?}"
        );
    }
    let error = read_events(&[end(""), done]).unwrap_err();
    assert!(error.contains("after the end of its message"), "{error}");
}

#[test]
fn a_call_after_the_end_of_its_message_is_an_error() {
    let late = call_chunk("1", &CALL.replace("\"a\"", "\"b\""));
    let events = [call_chunk("1", CALL), chunk("1", "", FINISH), late];
    let read = read_events(&events);
    assert!(
        read.unwrap_err()
            .contains("a call after the end of its message")
    );
}

/// The cost per block doesn't grow with the number of blocks.
#[test]
fn many_blocks_take_linear_time() {
    let mut stream = StreamDecoder::new("stream", None, u64::MAX);
    stream.push(stream_text(&[r#"{"type":"message_start","message":{}}"#]).as_bytes());
    let start = std::time::Instant::now();
    for index in 0..200_000 {
        let block =
            format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{}}}}"#);
        stream.push(stream_text(&[block]).as_bytes());
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
