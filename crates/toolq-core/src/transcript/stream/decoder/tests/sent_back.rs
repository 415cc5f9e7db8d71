//! The message that goes back with the results names their ids, whatever ids the stream had.

use crate::json::check_json;
use crate::transcript::stream::decoder::tests::server_habits::stream_text;
use crate::transcript::stream::{StreamDecoder, collect_turns};

/// Returns the ids of the calls, and the message to send back.
fn read(events: &[&str]) -> (Vec<String>, String) {
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    stream.keep_messages();
    stream.push(stream_text(events).as_bytes());
    stream.finish();
    let (turns, error) = collect_turns(stream.by_ref());
    assert!(error.is_none(), "{error:?}");
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    let ids = calls.map(|call| call.id.clone()).collect();
    (ids, stream.take_messages().concat())
}

/// Streams of one call, where `ID` is its id as the stream has it, with its key and a comma.
const STREAMS: [(&str, &[&str]); 4] = [
    (
        "id",
        &[
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"t","tool_calls":[{"index":0,ID"function":{"name":"n","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
    ),
    (
        "id",
        &[
            r#"{"type":"message_start","message":{}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use",ID"name":"n","input":{}}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    ),
    (
        "call_id",
        &[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"i",ID"name":"n","arguments":"{}"}}"#,
            r#"{"type":"response.completed","response":{"output":[]}}"#,
        ],
    ),
    (
        "call_id",
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i",ID"name":"n","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.done","item_id":"i","arguments":"{}"}"#,
            r#"{"type":"response.completed","response":{}}"#,
        ],
    ),
];

#[test]
fn the_message_has_the_ids_of_the_results() {
    for (key, events) in STREAMS {
        for (id, expected) in [
            (r#""a""#, Some(r#""a""#)),
            ("7", Some("7")),
            ("null", None),
            (r#""""#, None),
            ("", None),
        ] {
            let member = match id {
                "" => String::new(),
                id => format!(r#""{key}":{id},"#),
            };
            let events: Vec<String> = events
                .iter()
                .map(|event| event.replace("ID", &member))
                .collect();
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            let (ids, message) = read(&events);
            let expected = expected.map_or_else(|| format!("\"{}\"", ids[0]), str::to_owned);
            assert!(
                message.contains(&format!(r#""{key}":{expected}"#)),
                "{message}"
            );
            assert_eq!(check_json(&message), Ok(()), "{message}");
        }
    }
}

/// Readers disagree on which of two equal keys counts.
#[test]
fn no_key_is_there_twice() {
    let events: Vec<String> = STREAMS[0]
        .1
        .iter()
        .map(|event| event.replace("ID", ""))
        .collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let (_, message) = read(&events);
    assert_eq!(message.matches(r#""content""#).count(), 1, "{message}");
    assert!(
        message.starts_with(r#"{"role":"assistant","content":"t","#),
        "{message}"
    );
}
