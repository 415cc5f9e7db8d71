use super::*;
use crate::parse::response;

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
                answer.usage.input,
                answer.usage.output
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
    assert_eq!((answer.usage.input, answer.usage.output), (5, 6));
    let calls: Vec<(&str, &str)> = turn
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.input.as_ref().unwrap().text()))
        .collect();
    assert_eq!(calls, [("a", r#"{"x":1}"#), ("b", "{}")]);
}
