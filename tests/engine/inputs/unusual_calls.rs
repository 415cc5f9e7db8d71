//! Calls of every kind that a vendor knows: custom tools, any one of several choices, and kinds that toolq doesn't run.

use serde_json::{Value, json};
use toolq_core::types::{AnswerForm, CallKind};

use super::{open_calls, read, read_error, turns};

#[test]
fn the_text_of_a_custom_tool_is_its_input() {
    let chat = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"n","input":"x = 1"}}]}"#;
    let item = r#"{"type":"custom_tool_call","id":"i","call_id":"a","name":"n","input":"x = 1"}"#;
    for (text, form) in [
        (chat, AnswerForm::OpenAiChat),
        (item, AnswerForm::OpenAiResponses),
    ] {
        assert_eq!(open_calls(text), [r#"0.0:a n {"input":"x = 1"}"#], "{text}");
        let turn = turns(&read(text).unwrap()).remove(0);
        assert_eq!(
            (turn.answer_form, turn.calls[0].kind),
            (form, CallKind::Custom)
        );
    }
    let answered =
        format!(r#"[{item},{{"type":"custom_tool_call_output","call_id":"a","output":"1"}}]"#);
    assert!(open_calls(&answered).is_empty());
}

/// Choices are alternatives, so calls may stand in one of them.
#[test]
fn calls_may_stand_in_any_one_choice() {
    let chat = [
        r#"{"message":{"role":"assistant","content":"t"}}"#,
        r#"{"message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"n","arguments":"{}"}}]}}"#,
    ];
    let gemini = [
        r#"{"content":{"role":"model","parts":[{"text":"t"}]}}"#,
        r#"{"content":{"role":"model","parts":[{"functionCall":{"id":"a","name":"n","args":{}}}]}}"#,
    ];
    for (key, [text, call]) in [("choices", chat), ("candidates", gemini)] {
        let document = |choices: [&str; 2]| format!(r#"{{"{key}":[{}]}}"#, choices.join(","));
        for choices in [[call, text], [text, call]] {
            assert_eq!(
                open_calls(&document(choices)),
                ["0.0:a n {}"],
                "{choices:?}"
            );
        }
        let (.., message) = read_error(document([call, call]));
        assert!(message.contains("alternatives"), "{message}");
    }
}

/// An API that fails midway says so in the list that it has begun. Nothing of it runs.
#[test]
fn an_error_behind_a_call_is_one_of_the_whole() {
    let error = r#"{"error":{"code":500,"message":"boom"}}"#;
    for response in [
        r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"n","args":{}}}]}}]}"#,
        r#"{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"n","arguments":"{}"}}]}}]}"#,
        r#"{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"n","input":{}}}]}}}"#,
    ] {
        let (.., message) = read_error(format!("[{response},{error}]"));
        assert!(message.contains("API error (boom)"), "{message}");
    }
}

/// They are named. Alone, they are an error unless their vendor has such calls, and never silence.
#[test]
fn kinds_of_calls_that_toolq_does_not_run_are_named() {
    let item = r#"{"type":"computer_call","call_id":"c","action":{"type":"click"}}"#;
    let call = r#"{"type":"function_call","call_id":"a","name":"n","arguments":"{}"}"#;
    let answer = r#"{"type":"computer_call_output","call_id":"c","output":{}}"#;
    let server = r#"{"type":"tool_search_call","call_id":null,"execution":"server"}"#;
    let found = r#"{"type":"tool_search_output","call_id":null,"execution":"server"}"#;
    for (items, kinds) in [
        (vec![item, call], vec!["computer_call"]),
        (vec![item], vec!["computer_call"]),
        (vec![item, answer, call], vec![]),
        // What the API ran answers no call.
        (vec![call, server, found], vec![]),
    ] {
        let recording = read(format!("[{}]", items.join(","))).unwrap();
        assert_eq!(recording.unknown_kinds(), kinds, "{items:?}");
        let calls = items.iter().filter(|item| **item == call).count();
        assert_eq!(
            (recording.len(), recording.open_calls(false)),
            (1, calls),
            "{items:?}"
        );
    }
    for text in [
        r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"a","toolName":"n","input":{}}]}"#.to_owned(),
        r#"{"role":"model","parts":[{"functionCalling":{"name":"n","args":{}}}]}"#.to_owned(),
        r#"{"role":"assistant","content":[{"toolInvocation":{"name":"n","input":{}}},{"text":"t"}]}"#.to_owned(),
        r#"{"role":"assistant","content":"","toolCalls":[{"name":"n"}]}"#.to_owned(),
    ] {
        let (.., message) = read_error(&text);
        assert!(message.contains("toolq doesn't run"), "{message}: {text}");
    }
}

/// Parsers disagree on which of two duplicate keys counts, so none of them may hide a call.
#[test]
fn a_key_that_appears_twice_hides_no_call() {
    let input = json!({"x": 1});
    let arguments = input.to_string();
    let function = json!({"name": "n", "arguments": arguments});
    let tool_use = json!({"type": "tool_use", "id": "a", "name": "n", "input": input});
    let bedrock = json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "n", "input": input}}]});
    let gemini = json!({"role": "model", "parts": [{"functionCall": {"id": "a", "name": "n", "args": input}}]});
    let item =
        json!({"type": "function_call", "call_id": "a", "name": "n", "arguments": arguments});
    for document in [
        json!({"type": "message", "role": "assistant", "content": [tool_use], "stop_reason": "tool_use"}),
        json!({"messages": [{"role": "assistant", "content": [tool_use]}]}),
        json!({"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}}]}),
        json!({"object": "response", "status": "completed", "output": [item]}),
        json!({"candidates": [{"content": gemini, "finishReason": "STOP"}]}),
        json!({"contents": [gemini]}),
        json!({"output": {"message": bedrock}, "stopReason": "tool_use"}),
        json!({"messages": [bedrock]}),
        json!({"model": "m", "done": true, "message": {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "n", "arguments": input}}]}}),
    ] {
        assert_eq!(open_calls(&document.to_string()), [r#"0.0:a n {"x":1}"#]);
        for text in with_duplicates(&document) {
            let Ok(recording) = read(&text) else { continue };
            let calls: usize = turns(&recording).iter().map(|turn| turn.calls.len()).sum();
            assert_eq!(calls, 1, "{text}");
            let found = open_calls(&text).remove(0);
            let is_whole = found.ends_with(r#" n {"x":1}"#);
            assert!(is_whole || !found.contains('{'), "{text}: {found}");
        }
    }
}

/// Returns the documents in which one key appears twice, once with nothing.
fn with_duplicates(document: &Value) -> Vec<String> {
    let nested: Vec<(String, &Value, String)> = match document {
        Value::Object(members) => {
            let texts = || {
                members
                    .iter()
                    .map(|(key, value)| format!("{}:{value}", json!(key)))
            };
            let split = |at: usize| {
                let mut begin: Vec<String> = texts().take(at).collect();
                let mut end: Vec<String> = texts().skip(at + 1).collect();
                // Each of them has a comma on the side of the call.
                begin.push(String::new());
                end.insert(0, String::new());
                (
                    format!("{{{}", begin.join(",")),
                    format!("{}}}", end.join(",")),
                )
            };
            let of = members.iter().enumerate();
            let of = of.map(|(at, (key, value))| {
                let (begin, end) = split(at);
                (format!("{begin}{}:", json!(key)), value, end)
            });
            of.collect()
        }
        Value::Array(items) if items.len() == 1 => {
            vec![("[".to_owned(), &items[0], "]".to_owned())]
        }
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (begin, value, end) in &nested {
        if let Some(key) = begin
            .strip_suffix(':')
            .and_then(|text| text.rsplit(['{', ',']).next())
        {
            let nothing = match value {
                Value::Object(_) => "{}",
                Value::Array(_) => "[]",
                _ => "null",
            };
            found.push(format!("{begin}{value},{key}:{nothing}{end}"));
            found.push(format!("{begin}{nothing},{key}:{value}{end}"));
        }
        let inner = with_duplicates(value);
        found.extend(inner.iter().map(|text| format!("{begin}{text}{end}")));
    }
    found
}
