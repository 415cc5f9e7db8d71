//! The events of streams, cut anywhere.

mod call_inputs;
mod results_of_calls;
mod sent_back;
mod server_habits;

use proptest::prelude::*;

use super::*;
use crate::types::ResponseEnding;

/// Decodes a stream from pieces and returns a line per event.
fn decode_lines(pieces: &[&[u8]]) -> Vec<String> {
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    let mut lines = Vec::new();
    for piece in pieces {
        stream.push(piece);
        lines.extend(stream.by_ref().map(describe_event));
    }
    stream.finish();
    lines.extend(stream.by_ref().map(describe_event));
    lines
}

fn describe_event(event: StreamEvent) -> String {
    match event {
        StreamEvent::CallStarted { turn, form, .. } => format!("{turn} started {form:?}"),
        StreamEvent::PartialInput(part) => format!(
            "{} part {} {} {}",
            part.turn, part.position, part.name, part.input_so_far
        ),
        StreamEvent::CallComplete(call) => describe_call(&call),
        StreamEvent::Broken { turn, first, error } => {
            format!("{turn} broken from {first}: {error}")
        }
        StreamEvent::MessageEnd { turn, ending } => {
            let how = match ending {
                ResponseEnding::Complete => "",
                ResponseEnding::CutOff => ", cut off",
                ResponseEnding::Refused => ", refused",
            };
            format!("{turn} ended{how}")
        }
        StreamEvent::Aborted {
            unfinished_calls: unfinished,
            error,
        } => {
            let calls: Vec<String> = unfinished.iter().map(describe_call).collect();
            format!("aborted {calls:?} {error}")
        }
    }
}

fn describe_call(call: &Call) -> String {
    let input = call
        .input
        .as_ref()
        .map_or_else(ToString::to_string, |input| input.text().to_owned());
    format!(
        "{} call {} {} {} {input}",
        call.turn, call.position, call.id, call.name
    )
}

/// Returns a stream with an event for each `data`.
fn sse_text(data: &[&str]) -> String {
    let events: Vec<String> = data
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    events.concat()
}

const ANTHROPIC: [&str; 14] = [
    r#"{"type":"message_start","message":{"id":"m","content":[]}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hm"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"read","input":{}}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"é\"}"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"b","name":"none","input":{}}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{}}"#,
    r#"{"type":"message_stop"}"#,
];

#[test]
fn calls_are_emitted_as_they_arrive() {
    assert_eq!(
        decode_lines(&[sse_text(&ANTHROPIC).as_bytes()]),
        [
            "0 started Message",
            r#"0 part 0 read {"p":"#,
            r#"0 part 0 read {"p":"é"}"#,
            r#"0 call 0 a read {"p":"é"}"#,
            "0 started Message",
            "0 call 1 b none {}",
            "0 ended, cut off",
        ]
    );
}

/// Returns the id of the message and the model that the first call of a stream is from.
fn origin_of(data: &[&str]) -> (Option<String>, Option<String>) {
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    stream.push(sse_text(data).as_bytes());
    let origins = stream.filter_map(|event| match event {
        StreamEvent::CallStarted { origin, .. } => Some(origin),
        _ => None,
    });
    let first = origins.into_iter().next().unwrap();
    (first.message_id, first.model)
}

#[test]
fn a_call_is_from_the_message_and_model_that_its_stream_names() {
    let header = r#""id":"m","model":"x""#;
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n","input":{}}}"#;
    let item = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"a","name":"n","arguments":""}}"#;
    let anthropic =
        |header| format!(r#"{{"type":"message_start","message":{{{header},"content":[]}}}}"#);
    let chat = format!(
        r#"{{"object":"chat.completion.chunk",{header},"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"n","arguments":"{{}}"}}}}]}}}}]}}"#
    );
    let responses = format!(
        r#"{{"type":"response.created","response":{{"object":"response",{header},"output":[]}}}}"#
    );
    let named = (Some("m".to_owned()), Some("x".to_owned()));
    assert_eq!(origin_of(&[&anthropic(header), start]), named);
    assert_eq!(origin_of(&[&chat]), named);
    assert_eq!(origin_of(&[&responses, item]), named);
    let unnamed = anthropic(r#""id":"","model":"""#);
    assert_eq!(origin_of(&[&unnamed, start]), (None, None));
}

/// A stream that ends before the message has said why it ends is aborted, after the same events as in the complete stream.
#[test]
fn a_truncated_stream_is_aborted_after_the_same_events() {
    let text = sse_text(&ANTHROPIC);
    let whole = decode_lines(&[text.as_bytes()]);
    let last_two = sse_text(&ANTHROPIC[12..]);
    let stopped = text.len() - last_two.len() + "data: ".len() + ANTHROPIC[12].len();
    let stop_begins = text.find(ANTHROPIC[13]).unwrap();
    let last = stop_begins + ANTHROPIC[13].len();
    for cut in (0..last).filter(|&cut| text.is_char_boundary(cut)) {
        let mut part = decode_lines(&[&text.as_bytes()[..cut]]);
        if (stopped..=stop_begins).contains(&cut) {
            assert_eq!(part, whole, "{cut}");
            continue;
        }
        let end = part.pop().unwrap();
        assert!(whole.starts_with(&part), "{cut}: {part:?}");
        assert!(end.starts_with("aborted "), "{cut}: {end}");
    }
    assert_eq!(decode_lines(&[&text.as_bytes()[..last]]), whole);
}

/// Returns a stream of chat completion chunks with the id `id`, one for each choice in `data`.
fn chunk_text(id: &str, data: &[&str]) -> String {
    let chunk = |choice: &&str| {
        format!(r#"{{"id":"{id}","object":"chat.completion.chunk","choices":[{choice}]}}"#)
    };
    let chunks: Vec<String> = data.iter().map(chunk).collect();
    sse_text(&chunks.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn calls_are_distinguished_whatever_the_server_sends() {
    let pieces = chunk_text(
        "x",
        &[
            r#"{"index":0,"delta":{"role":"assistant","content":null}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"","arguments":"{\"x\""}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}},{"id":"c","function":{"name":"h","arguments":{"y":2}}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"name":"i","arguments":""}}]},"finish_reason":"tool_calls"}"#,
            r#"{"index":0,"delta":{"content":""},"finish_reason":null}"#,
        ],
    );
    let calls: Vec<String> = decode_lines(&[pieces.as_bytes(), b"data: [DONE]\n\n"])
        .into_iter()
        .filter(|line| !line.contains("part") && !line.contains("started"))
        .collect();
    let made = call_id_of(&calls[3]);
    assert_eq!(
        calls,
        [
            r#"0 call 0 a f {"x":1}"#,
            "0 call 1 b g {}",
            r#"0 call 2 c h {"y":2}"#,
            &format!("0 call 3 {made} i {{}}"),
            "0 ended",
        ]
    );
    assert!(made.starts_with("toolq_"));
}

fn call_id_of(line: &str) -> String {
    line.split(' ').nth(3).unwrap().to_owned()
}

const RESPONSES: [&str; 8] = [
    r#"{"type":"response.created","response":{"id":"r","status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":""}}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"x\":"}"#,
    r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"x\":1}"}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}","status":"completed"}}"#,
    r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#,
];

#[test]
fn streams_of_several_vendors_may_follow_each_other() {
    let last = r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"z","function":{"name":"f","arguments":"{"}}]},"finish_reason":"length"}"#;
    let text = [
        sse_text(&RESPONSES),
        chunk_text("x", &[last]),
        sse_text(&ANTHROPIC),
        sse_text(&["[DONE]"]),
        chunk_text("x", &[last]),
    ]
    .concat();
    let lines = decode_lines(&[text.as_bytes()]);
    let kinds: Vec<&String> = lines.iter().filter(|line| !line.contains("part")).collect();
    assert_eq!(
        kinds,
        [
            "0 started OpenAiResponses",
            r#"0 call 0 a f {"x":1}"#,
            "0 ended",
            "1 started OpenAiChat",
            "1 call 0 z f the input is not valid JSON: EOF while parsing an object at line 1 column 1",
            "1 ended, cut off",
            "2 started Message",
            r#"2 call 0 a read {"p":"é"}"#,
            "2 started Message",
            "2 call 1 b none {}",
            "2 ended, cut off",
            "3 started OpenAiChat",
            "3 call 0 z f the input is not valid JSON: EOF while parsing an object at line 1 column 1",
            "3 ended, cut off",
        ]
    );
}

/// An API error, or anything else that ends the stream in the middle of a message, is reported with its line.
#[test]
fn a_broken_stream_reports_its_position() {
    let start = &ANTHROPIC[..8];
    for (event, expected) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "an error (overloaded_error: Overloaded)",
        ),
        ("{\"type\":", "is not valid JSON"),
        (
            r#"{"type":"message_start","message":{}}"#,
            "another message",
        ),
        (
            r#"{"type":"content_block_stop","index":"1"}"#,
            "`index` must be a number",
        ),
        (
            r#"{"type":"content_block_stop","index":1,"index":2}"#,
            "appears twice",
        ),
        (
            r#"{"type":"content_block_delta","index":1,"delta":{"partial_json":1}}"#,
            "must be a string",
        ),
    ] {
        let text = sse_text(&[start, &[event], &ANTHROPIC[8..]].concat());
        let end = decode_lines(&[text.as_bytes()]).pop().unwrap();
        assert!(
            end.contains(expected) && end.contains("stream:17:"),
            "{event}: {end}"
        );
        assert!(end.starts_with(r#"aborted ["0 call 0 a read "#), "{end}");
    }
    for unrecognized in [r#"{"jsonrpc":"2.0"}"#, r#"{"type":"strange"}"#, "x"] {
        let text = sse_text(&[unrecognized]);
        let lines = decode_lines(&[text.as_bytes()]);
        assert!(
            lines.len() == 1 && lines[0].starts_with("aborted [] stream:1:"),
            "{lines:?}"
        );
    }
    assert!(decode_lines(&[]).concat().contains("has no model response"));
}

/// A stream that repeats or changes a complete call ends there. The call stays as it was.
#[test]
fn what_keeps_a_connection_alive_means_nothing() {
    let whole = decode_lines(&[sse_text(&ANTHROPIC).as_bytes()]);
    for event in [
        "null",
        "[]",
        "1",
        "",
        r#"{"type":"strange"}"#,
        r#"{"jsonrpc":"2.0"}"#,
    ] {
        for at in 0..=ANTHROPIC.len() {
            let text = sse_text(&[&ANTHROPIC[..at], &[event], &ANTHROPIC[at..]].concat());
            assert_eq!(decode_lines(&[text.as_bytes()]), whole, "{event} at {at}");
        }
    }
}

proptest! {
    /// Even within a character.
    #[test]
    fn events_do_not_depend_on_where_bytes_are_cut(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), ends in "\r\n|\r|\n") {
        let text = [sse_text(&ANTHROPIC), sse_text(&RESPONSES)].concat().replace('\n', &ends);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(decode_lines(&pieces), decode_lines(&[text.as_bytes()]));
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "(data: ?)?(\\{\"type\":\"(message|content_block|response)_?[a-z.]{0,8}\"|[\\[\\]{}:,\"a0\n\r]){0,20}") {
        decode_lines(&[text.as_bytes()]);
    }
}
