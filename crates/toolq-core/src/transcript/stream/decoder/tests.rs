//! What streams tell, cut anywhere.

use proptest::prelude::*;

use super::*;

/// A line for each thing told: parts as far as they are known.
fn told(pieces: &[&[u8]]) -> Vec<String> {
    let mut stream = Stream::new("stream", None, 1 << 20);
    let mut lines = Vec::new();
    for piece in pieces {
        stream.push(piece);
        lines.extend(stream.by_ref().map(line));
    }
    stream.end();
    lines.extend(stream.by_ref().map(line));
    lines
}

fn line(told: Told) -> String {
    match told {
        Told::Begun { turn, form } => format!("{turn} begun {form:?}"),
        Told::Part(part) => format!(
            "{} part {} {} {}",
            part.turn, part.position, part.name, part.text
        ),
        Told::Whole(call) => whole(&call),
        Told::Closed { turn, cut_off } => {
            format!("{turn} closed{}", if cut_off { ", cut off" } else { "" })
        }
        Told::Broke { unfinished, error } => {
            let calls: Vec<String> = unfinished.iter().map(whole).collect();
            format!("broke {calls:?} {error}")
        }
    }
}

fn whole(call: &Call) -> String {
    let input = call
        .input
        .as_ref()
        .map_or_else(ToString::to_string, |input| input.text().to_owned());
    format!(
        "{} call {} {} {} {input}",
        call.turn, call.position, call.id, call.name
    )
}

/// Events as a vendor writes them.
fn events(data: &[&str]) -> String {
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
fn a_message_is_told_as_it_arrives() {
    assert_eq!(
        told(&[events(&ANTHROPIC).as_bytes()]),
        [
            "0 begun Message",
            r#"0 part 0 read {"p":"#,
            r#"0 part 0 read {"p":"é"}"#,
            r#"0 call 0 a read {"p":"é"}"#,
            "0 begun Message",
            "0 call 1 b none {}",
            "0 closed, cut off",
        ]
    );
}

/// A stream that ends between two events, or in one, broke off: nothing but the whole message is over.
#[test]
fn a_stream_cut_anywhere_tells_what_it_had() {
    let text = events(&ANTHROPIC);
    let whole = told(&[text.as_bytes()]);
    let last =
        text.find(r#"{"type":"message_stop"}"#).unwrap() + r#"{"type":"message_stop"}"#.len();
    for cut in (0..last).filter(|&cut| text.is_char_boundary(cut)) {
        let mut part = told(&[&text.as_bytes()[..cut]]);
        let end = part.pop().unwrap();
        assert!(whole.starts_with(&part), "{cut}: {part:?}");
        assert!(end.starts_with("broke "), "{cut}: {end}");
    }
    assert_eq!(told(&[&text.as_bytes()[..last]]), whole);
}

/// Chunks of one message.
fn chunks(id: &str, data: &[&str]) -> String {
    let chunk = |choice: &&str| {
        format!(r#"{{"id":"{id}","object":"chat.completion.chunk","choices":[{choice}]}}"#)
    };
    let chunks: Vec<String> = data.iter().map(chunk).collect();
    events(&chunks.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn servers_differ_in_how_they_tell_calls_apart() {
    let pieces = chunks(
        "x",
        &[
            r#"{"index":0,"delta":{"role":"assistant","content":null}}"#,
            r#"{"index":1,"delta":{"tool_calls":[{"index":0,"id":"other","function":{"name":"n","arguments":"{}"}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"","arguments":"{\"x\""}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}},{"id":"c","function":{"name":"h","arguments":{"y":2}}}]}}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"name":"i","arguments":""}}]},"finish_reason":"tool_calls"}"#,
            r#"{"index":0,"delta":{"content":""},"finish_reason":null}"#,
        ],
    );
    let calls: Vec<String> = told(&[pieces.as_bytes(), b"data: [DONE]\n\n"])
        .into_iter()
        .filter(|line| !line.contains("part") && !line.contains("begun"))
        .collect();
    let made = made_id_of(&calls[3]);
    assert_eq!(
        calls,
        [
            r#"0 call 0 a f {"x":1}"#,
            "0 call 1 b g {}",
            r#"0 call 2 c h {"y":2}"#,
            &format!("0 call 3 {made} i {{}}"),
            "0 closed",
        ]
    );
    assert!(made.starts_with("toolq_"));
}

fn made_id_of(line: &str) -> String {
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
fn streams_of_several_vendors_stand_one_behind_another() {
    let last = r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"z","function":{"name":"f","arguments":"{"}}]},"finish_reason":"length"}"#;
    let text = [
        events(&RESPONSES),
        chunks("x", &[last]),
        events(&ANTHROPIC),
        events(&["[DONE]"]),
        chunks("x", &[last]),
    ]
    .concat();
    let lines = told(&[text.as_bytes()]);
    let kinds: Vec<&String> = lines.iter().filter(|line| !line.contains("part")).collect();
    assert_eq!(
        kinds,
        [
            "0 begun OpenAiResponses",
            r#"0 call 0 a f {"x":1}"#,
            "0 closed",
            "1 begun OpenAiChat",
            "1 call 0 z f the input is no JSON: EOF while parsing an object at line 1 column 1",
            "1 closed, cut off",
            "2 begun Message",
            r#"2 call 0 a read {"p":"é"}"#,
            "2 begun Message",
            "2 call 1 b none {}",
            "2 closed, cut off",
            "3 begun OpenAiChat",
            "3 call 0 z f the input is no JSON: EOF while parsing an object at line 1 column 1",
            "3 closed, cut off",
        ]
    );
}

/// FAULTS 103: an error after the stream had begun, and whatever else ends it in the middle.
#[test]
fn what_breaks_a_stream_is_said_with_its_place() {
    let begun = &ANTHROPIC[..8];
    for (event, says) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "an error (overloaded_error: Overloaded)",
        ),
        ("{\"type\":", "no JSON"),
        ("[]", "no object"),
        (
            r#"{"type":"message_start","message":{}}"#,
            "another message",
        ),
        (r#"{"type":"content_block_stop"}"#, "no `index`"),
        (
            r#"{"type":"content_block_stop","index":1,"index":2}"#,
            "stands twice",
        ),
        (
            r#"{"type":"content_block_delta","index":1,"delta":{"partial_json":1}}"#,
            "must be a text",
        ),
    ] {
        let text = events(&[begun, &[event], &ANTHROPIC[8..]].concat());
        let end = told(&[text.as_bytes()]).pop().unwrap();
        assert!(
            end.contains(says) && end.contains("stream:17:"),
            "{event}: {end}"
        );
        assert!(end.starts_with(r#"broke ["0 call 0 a read "#), "{end}");
    }
    for nobodys in [r#"{"jsonrpc":"2.0"}"#, r#"{"type":"strange"}"#, "x"] {
        let text = events(&[nobodys, ANTHROPIC[0]]);
        let lines = told(&[text.as_bytes()]);
        assert!(
            lines.len() == 1 && lines[0].starts_with("broke [] stream:1:"),
            "{lines:?}"
        );
    }
    assert!(told(&[]).concat().contains("holds no answer"));
}

#[test]
fn a_late_piece_is_no_second_call() {
    let late = [&ANTHROPIC[..10], &[ANTHROPIC[8]]].concat();
    let end = told(&[events(&late).as_bytes()]).pop().unwrap();
    assert!(end.contains("whole already"), "{end}");
}

proptest! {
    /// FAULTS 17.
    #[test]
    fn where_bytes_are_cut_changes_nothing(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), ends in "\r\n|\r|\n") {
        let text = [events(&ANTHROPIC), events(&RESPONSES)].concat().replace('\n', &ends);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(told(&pieces), told(&[text.as_bytes()]));
    }

    #[test]
    fn anything_is_survived(text in "(data: ?)?(\\{\"type\":\"(message|content_block|response)_?[a-z.]{0,8}\"|[\\[\\]{}:,\"a0\n\r]){0,20}") {
        told(&[text.as_bytes()]);
    }
}
