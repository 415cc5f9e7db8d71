//! Compares streamed responses with the same responses unstreamed, for servers with different habits.

use serde_json::Value;

use crate::transcript::response::parse_response;
use crate::transcript::response_error::ResponseError;
use crate::transcript::stream::decoder::response::tests::{
    assemble, assemble_with_early_calls, debug_calls,
};
use crate::transcript::stream::{ResponseAssembler, StreamDecoder, StreamEvent};
use crate::types::{Api, Call, ModelResponse, Turn};

/// Assembles a stream of `api` and parses the resulting body.
fn read_streamed(api: Api, events: &[&str]) -> Result<(ModelResponse, Turn), ResponseError> {
    let body = assemble(api, events, 4096)?;
    parse_response(api, &body.expect("the stream is complete"), 0)
}

const START: &str = r#"{"type":"message_start","message":{}}"#;

fn input_texts(turn: &Turn) -> Vec<String> {
    let input = |call: &Call| match &call.input {
        Ok(input) => input.text().to_owned(),
        Err(error) => format!("{error:?}"),
    };
    turn.calls.iter().map(input).collect()
}

/// An input that arrives in one piece is the same as in the unstreamed response: with all its digits, duplicate keys,
/// and any depth of nesting.
#[test]
fn a_complete_input_is_kept_verbatim() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(140), "]".repeat(140));
    for given in [
        r#"{"n":12345678901234567890123,"f":1.10}"#,
        r#"{"n":1,"n":2}"#,
        r#"{"n":1e999}"#,
        &deep,
    ] {
        let block = format!(r#"{{"type":"tool_use","id":"a","name":"n","input":{given}}}"#);
        let begin =
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
        let stop = r#"{"type":"content_block_stop","index":0}"#;
        let end = r#"{"type":"message_stop"}"#;
        let (_, streamed) = read_streamed(Api::Anthropic, &[START, &begin, stop, end]).unwrap();
        let whole = format!(r#"{{"type":"message","role":"assistant","content":[{block}]}}"#);
        let (_, whole) = parse_response(Api::Anthropic, &whole, 0).unwrap();
        assert_eq!(input_texts(&streamed), input_texts(&whole));
        assert_eq!(input_texts(&whole).len(), 1);

        let call = |arguments: &str| {
            format!(
                r#""tool_calls":[{{"id":"a","type":"function","function":{{"name":"n","arguments":{arguments}}}}}]"#
            )
        };
        let call = call(given);
        let chunk =
            format!(r#"{{"choices":[{{"delta":{{{call}}},"finish_reason":"tool_calls"}}]}}"#);
        let (_, streamed) = read_streamed(Api::OpenAiChat, &[&chunk]).unwrap();
        let whole = format!(r#"{{"choices":[{{"message":{{"role":"assistant",{call}}}}}]}}"#);
        let (_, whole) = parse_response(Api::OpenAiChat, &whole, 0).unwrap();
        assert_eq!(input_texts(&streamed), input_texts(&whole));
    }
    let halved = r#"{"type":"content_block_delta","index":0,"delta":{"partial_json":"\ud83d"}}"#;
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n","input":{}}}"#;
    let result = assemble(Api::Anthropic, &[START, begin, halved], 4096);
    assert!(
        matches!(&result, Err(ResponseError::Unreadable(why)) if why.contains("surrogate")),
        "{result:?}"
    );
}

/// A response that ended with an error is rejected, streamed or not. An empty `finish_reason` doesn't end a response.
#[test]
fn a_response_that_did_not_end_is_rejected() {
    let calls = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"{}"}}]},"finish_reason":""}]}"#;
    assert_eq!(assemble(Api::OpenAiChat, &[calls], 16), Ok(None));
    let detailed = r#"{"code":502,"message":"upstream"}"#;
    for (error, expected) in [("null", "ended the response"), (detailed, "upstream")] {
        let failed =
            format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"error","error":{error}}}]}}"#);
        let whole = failed.replace("\"delta\":{}", "\"message\":{\"content\":\"So\"}");
        for result in [
            assemble(Api::OpenAiChat, &[calls, &failed, "[DONE]"], 16).map(|_| ()),
            parse_response(Api::OpenAiChat, &whole, 0).map(|_| ()),
        ] {
            let is_error = matches!(&result, Err(ResponseError::Api { message, .. }) if message.contains(expected));
            assert!(is_error, "{result:?}");
        }
    }
}

/// The assembler doesn't wait for anything after the last event, even if the connection stays open.
#[test]
fn the_last_event_finishes_the_assembler() {
    let reason = r#"{"choices":[{"delta":{"content":"So."},"finish_reason":"stop"}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":5}}"#;
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let end = r#"{"type":"message_stop"}"#;
    for (api, events) in [
        (Api::OpenAiChat, vec![reason, usage, "[DONE]"]),
        (Api::Anthropic, vec![START, stop, end]),
    ] {
        let mut assembly = ResponseAssembler::new(api, 0);
        for event in events {
            assert!(!assembly.is_finished(), "{event}");
            assembly
                .push(format!("data: {event}\n\n").as_bytes())
                .unwrap();
        }
        assert!(assembly.is_finished() && assembly.is_complete());
    }
}

/// Complete calls without ids are distinguished by their content; a repeated name alone doesn't start a new call.
#[test]
fn calls_without_ids_are_distinguished() {
    let piece = |call: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let end = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
    for keys in [r#""index":0,"id":"","#, r#""index":0,"#, r#""id":"","#, ""] {
        let call = |name: &str, arguments: &str| {
            let arguments = Value::from(arguments);
            piece(&format!(
                r#"{{{keys}"function":{{"name":"{name}","arguments":{arguments}}}}}"#
            ))
        };
        let events = [
            call("n", "{\"x\":"),
            call("n", " 1}"),
            call("n", ""),
            call("n", "{\"x\": 2}"),
            end.to_owned(),
        ];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (_, turn) = read_streamed(Api::OpenAiChat, &events).unwrap();
        assert_eq!(input_texts(&turn), [r#"{"x": 1}"#, r#"{"x": 2}"#], "{keys}");
        let lines: Vec<String> = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        let text = lines.concat();
        let mut stream = StreamDecoder::new("x", None, 1 << 20);
        stream.push(text.as_bytes());
        stream.finish();
        let emitted = std::iter::from_fn(|| stream.next());
        let complete = emitted.filter_map(|event| match event {
            StreamEvent::CallComplete(call) => call.input.ok().map(|input| input.text().to_owned()),
            _ => None,
        });
        assert_eq!(complete.collect::<Vec<_>>(), input_texts(&turn), "{keys}");
    }
}

/// Additional members that a server puts into a call are sent back with it, as for an unstreamed response.
#[test]
fn extra_members_of_a_call_are_kept() {
    let extra_members = r#""extra_content":{"google":{"thought_signature":"s", "n":1.50}}"#;
    let chunk = format!(
        r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","type":"function","function":{{"name":"n","arguments":"{{}}"}},{extra_members}}}]}},"finish_reason":"tool_calls"}}]}}"#
    );
    let (response, _) = read_streamed(Api::OpenAiChat, &[&chunk]).unwrap();
    let call = format!(
        r#"[{{"id":"a","type":"function","function":{{"name":"n","arguments":"{{}}"}},{extra_members}}}]"#
    );
    assert!(
        response.message.get().contains(&call),
        "{}",
        response.message
    );
}

/// The cost per block doesn't grow with the number of blocks.
#[test]
fn many_blocks_take_linear_time() {
    let event = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{}}\n\n";
    let mut assembly = ResponseAssembler::new(Api::Anthropic, 0);
    let begin = format!("data: {START}\n\n");
    assembly.push(begin.as_bytes()).unwrap();
    let start = std::time::Instant::now();
    for index in 0..200_000 {
        let event = event.replace(":0,", &format!(":{index},"));
        assembly.push(event.as_bytes()).unwrap();
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// Lines may end in any way that the standard allows, and a byte order mark may come first.
#[test]
fn lines_may_end_in_cr() {
    let text = format!("\u{FEFF}data: {START}\r\rdata: {{\"type\":\"message_stop\"}}\r\r");
    let mut assembly = ResponseAssembler::new(Api::Anthropic, 0);
    assembly.push(text.as_bytes()).unwrap();
    assert!(assembly.finish().unwrap().is_some());
    let mut assembly = ResponseAssembler::new(Api::Anthropic, 0);
    let result = assembly.push(b"data: \"\xFF\"\n\n");
    assert!(
        matches!(result, Err(ResponseError::Unreadable(_))),
        "{result:?}"
    );
}

/// A call has the same bytes when it's handed out early, in the body, and in the log's single line of the body,
/// regardless of the line separators that it or its neighbors contain.
#[test]
fn a_call_has_the_same_bytes_as_in_the_log() {
    let delta = |index: usize, json: &str| {
        let json = Value::from(json);
        format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":{json}}}}}"#
        )
    };
    let begin = |index: usize, kind: &str| {
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{{kind}}}}}"#)
    };
    let stop = |index: usize| format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    let end = r#"{"type":"message_stop"}"#;
    let call = r#""type":"tool_use","name":"n","input":{}"#;
    for model in ["m", "\u{2028}"] {
        let start = format!(r#"{{"type":"message_start","message":{{"model":"{model}"}}}}"#);
        for texts in ["plain", "\u{2029}"] {
            for json in ["{\n  \"name\": \"2\"\n}", "{\"name\": \"2\u{2028}x\"}"] {
                let events = [
                    start.clone(),
                    begin(0, call),
                    delta(0, r#"{"x": 1.50}"#),
                    stop(0),
                    begin(1, &format!(r#""type":"text","text":"{texts}""#)),
                    begin(2, call),
                    delta(2, json),
                    stop(2),
                    end.to_owned(),
                ];
                let events: Vec<&str> = events.iter().map(String::as_str).collect();
                let (before, after, turn) = assemble_with_early_calls(Api::Anthropic, &events);
                assert_eq!(before.len(), 2);
                assert_eq!(
                    debug_calls(before, after),
                    format!("{:?}", turn.calls),
                    "{json}"
                );
                let first = turn.calls[0].input.as_ref().unwrap();
                assert_eq!(first.text(), r#"{"x": 1.50}"#);
            }
        }
    }
}
