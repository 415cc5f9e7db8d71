//! A streamed answer is held against the same answer unstreamed, and against the servers that there are.

use serde_json::Value;

use crate::transcript::assembly::body::Assembly;
use crate::transcript::assembly::body::tests::{all_of, assembled, early};
use crate::transcript::response::{ResponseFault, response};
use crate::transcript::stream::{Stream, Told};
use crate::types::{Api, Call, Response, Turn};

/// What the body has to say about a stream in this api.
fn read(api: Api, events: &[&str]) -> Result<(Response, Turn), ResponseFault> {
    let body = assembled(api, events, 4096)?;
    response(api, &body.expect("the stream is whole"), 0)
}

fn inputs(turn: &Turn) -> Vec<String> {
    let input = |call: &Call| match &call.input {
        Ok(input) => input.text().to_owned(),
        Err(fault) => format!("{fault:?}"),
    };
    turn.calls.iter().map(input).collect()
}

/// FAULTS 17: an input that stands whole in its event is that of the same answer unstreamed: all digits, keys that stand
/// twice, whatever is nested how deeply.
#[test]
fn an_input_that_stands_whole_is_kept_as_it_came() {
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
        let (_, streamed) = read(Api::Anthropic, &[&begin, stop, end]).unwrap();
        let whole = format!(r#"{{"type":"message","role":"assistant","content":[{block}]}}"#);
        let (_, whole) = response(Api::Anthropic, &whole, 0).unwrap();
        assert_eq!(inputs(&streamed), inputs(&whole));
        assert_eq!(inputs(&whole).len(), 1);

        let call = |arguments: &str| {
            format!(
                r#""tool_calls":[{{"id":"a","type":"function","function":{{"name":"n","arguments":{arguments}}}}}]"#
            )
        };
        let call = call(given);
        let chunk =
            format!(r#"{{"choices":[{{"delta":{{{call}}},"finish_reason":"tool_calls"}}]}}"#);
        let (_, streamed) = read(Api::OpenAiChat, &[&chunk]).unwrap();
        let whole = format!(r#"{{"choices":[{{"message":{{"role":"assistant",{call}}}}}]}}"#);
        let (_, whole) = response(Api::OpenAiChat, &whole, 0).unwrap();
        assert_eq!(inputs(&streamed), inputs(&whole));
    }
    let halved = r#"{"type":"content_block_delta","index":0,"delta":{"partial_json":"\ud83d"}}"#;
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n","input":{}}}"#;
    let fault = assembled(Api::Anthropic, &[begin, halved], 4096);
    assert!(
        matches!(&fault, Err(ResponseFault::Strange(why)) if why.contains("surrogate")),
        "{fault:?}"
    );
}

/// FAULTS 17: an answer that ended in an error is none, streamed or not; an empty reason to stop is none.
#[test]
fn an_answer_that_did_not_end_is_none() {
    let calls = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"{}"}}]},"finish_reason":""}]}"#;
    assert_eq!(assembled(Api::OpenAiChat, &[calls], 16), Ok(None));
    let told = r#"{"code":502,"message":"upstream"}"#;
    for (error, said) in [("null", "ended the answer"), (told, "upstream")] {
        let broke =
            format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"error","error":{error}}}]}}"#);
        let whole = broke.replace("\"delta\":{}", "\"message\":{\"content\":\"So\"}");
        for fault in [
            assembled(Api::OpenAiChat, &[calls, &broke, "[DONE]"], 16).map(|_| ()),
            response(Api::OpenAiChat, &whole, 0).map(|_| ()),
        ] {
            let is_error = matches!(&fault, Err(ResponseFault::Error { message, .. }) if message.contains(said));
            assert!(is_error, "{fault:?}");
        }
    }
}

/// Nothing is waited for behind the last event, though the connection stays open.
#[test]
fn the_last_event_is_known() {
    let reason = r#"{"choices":[{"delta":{"content":"So."},"finish_reason":"stop"}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":5}}"#;
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let end = r#"{"type":"message_stop"}"#;
    for (api, events) in [
        (Api::OpenAiChat, vec![reason, usage, "[DONE]"]),
        (Api::Anthropic, vec![stop, end]),
    ] {
        let mut assembly = Assembly::new(api);
        for event in events {
            assert!(!assembly.is_over(), "{event}");
            assembly
                .push(format!("data: {event}\n\n").as_bytes())
                .unwrap();
        }
        assert!(assembly.is_over() && assembly.is_complete());
    }
}

/// Whole calls without ids are told apart by what stands in them; a name that is repeated begins none.
#[test]
fn calls_without_ids_are_told_apart() {
    let piece = |call: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let end = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
    for place in [r#""index":0,"id":"","#, r#""index":0,"#, r#""id":"","#, ""] {
        let call = |name: &str, arguments: &str| {
            let arguments = Value::from(arguments);
            piece(&format!(
                r#"{{{place}"function":{{"name":"{name}","arguments":{arguments}}}}}"#
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
        let (_, turn) = read(Api::OpenAiChat, &events).unwrap();
        assert_eq!(inputs(&turn), [r#"{"x": 1}"#, r#"{"x": 2}"#], "{place}");
        let lines: Vec<String> = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        let text = lines.concat();
        let mut stream = Stream::new("x", None, 1 << 20);
        stream.push(text.as_bytes());
        stream.end();
        let told = std::iter::from_fn(|| stream.next());
        let whole = told.filter_map(|told| match told {
            Told::Whole(call) => call.input.ok().map(|input| input.text().to_owned()),
            _ => None,
        });
        assert_eq!(whole.collect::<Vec<_>>(), inputs(&turn), "{place}");
    }
}

/// What a server puts beside a call goes back with it, as it does where the answer came whole.
#[test]
fn what_stands_beside_a_call_is_kept() {
    let beside = r#""extra_content":{"google":{"thought_signature":"s", "n":1.50}}"#;
    let chunk = format!(
        r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","type":"function","function":{{"name":"n","arguments":"{{}}"}},{beside}}}]}},"finish_reason":"tool_calls"}}]}}"#
    );
    let (answer, _) = read(Api::OpenAiChat, &[&chunk]).unwrap();
    let call = format!(
        r#"[{{"id":"a","type":"function","function":{{"name":"n","arguments":"{{}}"}},{beside}}}]"#
    );
    assert!(answer.message.get().contains(&call), "{}", answer.message);
}

/// FAULTS 4: as many blocks as an answer may hold cost no more each than a few do.
#[test]
fn many_blocks_are_a_matter_of_moments() {
    let event = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{}}\n\n";
    let mut assembly = Assembly::new(Api::Anthropic);
    let begun = std::time::Instant::now();
    for index in 0..200_000 {
        let event = event.replace(":0,", &format!(":{index},"));
        assembly.push(event.as_bytes()).unwrap();
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

/// FAULTS 17: lines end as the standard says, and a mark may stand first.
#[test]
fn lines_may_end_in_cr() {
    let text = "\u{FEFF}data: {\"type\":\"message_stop\"}\r\r";
    let mut assembly = Assembly::new(Api::Anthropic);
    assembly.push(text.as_bytes()).unwrap();
    assert!(assembly.body().unwrap().is_some());
    let mut assembly = Assembly::new(Api::Anthropic);
    let fault = assembly.push(b"data: \"\xFF\"\n\n");
    assert!(matches!(fault, Err(ResponseFault::Strange(_))), "{fault:?}");
}

/// FAULTS 17, 122: a call has the same bytes when it is out early, in the body, and in the line that a log makes of that,
/// whatever breaks lines in it or beside it.
#[test]
fn a_call_has_the_bytes_that_the_log_will_have() {
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
                let (before, after, turn) = early(Api::Anthropic, &events);
                assert_eq!(before.len(), 2);
                assert_eq!(all_of(before, after), format!("{:?}", turn.calls), "{json}");
                let first = turn.calls[0].input.as_ref().unwrap();
                assert_eq!(first.text(), r#"{"x": 1.50}"#);
            }
        }
    }
}
