//! The documented input shapes.

use toolq_core::types::{
    AnswerForm, Dialect, Dialect::Anthropic, Dialect::ClaudeCode, Dialect::Codex, Dialect::Toolq,
    InputLayout,
};

use super::{read_as, read_error, turns};

pub const TOOL_USE: &str = r#"{"type":"tool_use","id":"a","name":"n","input":{"x":1}}"#;
pub const CHAT_CALL: &str =
    r#"{"id":"a","type":"function","function":{"name":"n","arguments":"{\"x\":1}"}}"#;
pub const FUNCTION_CALL_ITEM: &str =
    r#"{"type":"function_call","id":"fc","call_id":"a","name":"n","arguments":"{\"x\":1}"}"#;
const USER_MESSAGE: &str = r#"{"role":"user","content":"hi"}"#;

/// A text with one open call, with the dialect, answer form and layout that it must be recognized as.
pub struct InputShape {
    pub text: String,
    pub dialect: Dialect,
    form: AnswerForm,
    pub layout: InputLayout,
}

fn new_shape(text: String, dialect: Dialect, form: AnswerForm, layout: InputLayout) -> InputShape {
    InputShape {
        text,
        dialect,
        form,
        layout,
    }
}

/// Returns every documented shape.
pub fn shapes() -> Vec<InputShape> {
    [
        anthropic_shapes(),
        chat_shapes(),
        responses_shapes(),
        gemini_shapes(),
        bedrock_shapes(),
        ollama_shapes(),
        log_shapes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn anthropic_message() -> String {
    format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"t"}},{TOOL_USE}]}}"#)
}

fn anthropic_response() -> String {
    anthropic_message().replacen(
        '{',
        r#"{"type":"message","id":"m","stop_reason":"tool_use","#,
        1,
    )
}

fn anthropic_shapes() -> Vec<InputShape> {
    let document = |text, form| new_shape(text, Anthropic, form, InputLayout::Document);
    let lines = |text, form| new_shape(text, Anthropic, form, InputLayout::Lines);
    let message = anthropic_message();
    vec![
        document(anthropic_response(), AnswerForm::Message),
        document(message.clone(), AnswerForm::Message),
        document(
            format!(r#"{{"content":[{TOOL_USE}]}}"#),
            AnswerForm::Message,
        ),
        document(
            anthropic_response().replace(r#""role":"assistant","#, ""),
            AnswerForm::Message,
        ),
        document(format!("[{TOOL_USE}]"), AnswerForm::Blocks),
        document(TOOL_USE.to_owned(), AnswerForm::Block),
        document(
            format!(r#"{{"messages":[{USER_MESSAGE},{message}]}}"#),
            AnswerForm::Message,
        ),
        document(format!("[{USER_MESSAGE},{message}]"), AnswerForm::Message),
        lines(format!("{USER_MESSAGE}\n{message}\n"), AnswerForm::Message),
        lines(format!("{USER_MESSAGE} {TOOL_USE}"), AnswerForm::Block),
    ]
}

fn chat_shapes() -> Vec<InputShape> {
    let shape = |text, layout| new_shape(text, Dialect::OpenAiChat, AnswerForm::OpenAiChat, layout);
    let message = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{CHAT_CALL}]}}"#);
    vec![
        shape(
            format!(r#"{{"choices":[{{"message":{message}}}]}}"#),
            InputLayout::Document,
        ),
        shape(message.clone(), InputLayout::Document),
        shape(format!("[{USER_MESSAGE},{message}]"), InputLayout::Document),
        shape(
            format!(r#"{{"messages":[{USER_MESSAGE},{message}]}}"#),
            InputLayout::Document,
        ),
        shape(
            format!(r#"[{{"task":1,"traj":[{USER_MESSAGE},{message}]}}]"#),
            InputLayout::Document,
        ),
        shape(format!("{USER_MESSAGE}\n{message}"), InputLayout::Lines),
    ]
}

fn responses_shapes() -> Vec<InputShape> {
    let shape = |text, layout| {
        new_shape(
            text,
            Dialect::OpenAiResponses,
            AnswerForm::OpenAiResponses,
            layout,
        )
    };
    let items = format!(r#"{{"type":"reasoning","id":"rs","summary":[]}},{FUNCTION_CALL_ITEM}"#);
    let response = format!(r#"{{"object":"response","error":null,"output":[{items}]}}"#);
    vec![
        shape(response, InputLayout::Document),
        shape(format!("[{USER_MESSAGE},{items}]"), InputLayout::Document),
        shape(
            format!(r#"{{"model":"m","input":[{USER_MESSAGE},{items}]}}"#),
            InputLayout::Document,
        ),
        shape(FUNCTION_CALL_ITEM.to_owned(), InputLayout::Document),
        shape(
            format!("{USER_MESSAGE}\n{FUNCTION_CALL_ITEM}"),
            InputLayout::Lines,
        ),
    ]
}

fn gemini_shapes() -> Vec<InputShape> {
    let shape = |text, layout| new_shape(text, Dialect::Gemini, AnswerForm::Gemini, layout);
    let document = |text| shape(text, InputLayout::Document);
    let part = r#"{"functionCall":{"id":"a","name":"n","args":{"x":1}}}"#;
    let message = format!(r#"{{"role":"model","parts":[{{"text":"t"}},{part}]}}"#);
    let user = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
    let response = format!(r#"{{"candidates":[{{"content":{message},"finishReason":"STOP"}}]}}"#);
    vec![
        document(response.clone()),
        document(message.clone()),
        document(format!(r#"{{"contents":[{user},{message}]}}"#)),
        document(format!("[{user},{message}]")),
        // A stream without events is an array of responses.
        document(format!("[{response}]")),
        document(message.replace("functionCall", "function_call")),
        shape(format!("{user}\n{message}"), InputLayout::Lines),
    ]
}

fn bedrock_shapes() -> Vec<InputShape> {
    let shape = |text, layout| new_shape(text, Dialect::Bedrock, AnswerForm::Bedrock, layout);
    let document = |text| shape(text, InputLayout::Document);
    let block = r#"{"toolUse":{"toolUseId":"a","name":"n","input":{"x":1}}}"#;
    let message = format!(r#"{{"role":"assistant","content":[{{"text":"t"}},{block}]}}"#);
    let user = r#"{"role":"user","content":[{"text":"hi"}]}"#;
    vec![
        document(format!(
            r#"{{"output":{{"message":{message}}},"stopReason":"tool_use"}}"#
        )),
        document(message.clone()),
        document(format!(r#"{{"messages":[{user},{message}]}}"#)),
        document(format!("[{user},{message}]")),
        shape(format!("{user}\n{message}"), InputLayout::Lines),
    ]
}

fn ollama_shapes() -> Vec<InputShape> {
    let shape = |text, layout| new_shape(text, Dialect::Ollama, AnswerForm::Ollama, layout);
    let document = |text| shape(text, InputLayout::Document);
    let call = r#"{"id":"a","function":{"name":"n","arguments":{"x":1}}}"#;
    let message = format!(r#"{{"role":"assistant","content":"","tool_calls":[{call}]}}"#);
    let response =
        format!(r#"{{"model":"m","message":{message},"done":true,"done_reason":"stop"}}"#);
    vec![
        document(response.clone()),
        document(message.clone()),
        document(format!(
            r#"{{"messages":[{USER_MESSAGE},{message}],"stream":false}}"#
        )),
        document(format!("[{USER_MESSAGE},{message}]")),
        shape(format!("{USER_MESSAGE}\n{message}"), InputLayout::Lines),
        // Each part of a streamed response is a line.
        shape(
            format!(
                "{}\n{}",
                response.replace("true", "false"),
                r#"{"model":"m","message":{"role":"assistant","content":""},"done":true}"#
            ),
            InputLayout::Lines,
        ),
    ]
}

fn log_shapes() -> Vec<InputShape> {
    let shape = |lines: &[String], dialect, form| {
        new_shape(lines.join("\n"), dialect, form, InputLayout::Lines)
    };
    let response = format!(
        r#"{{"type":"assistant","uuid":"u","message":{}}}"#,
        anthropic_response()
    );
    let claude_code = [r#"{"type":"summary"}"#.to_owned(), response];
    let codex = [
        r#"{"type":"session_meta","payload":{}}"#.to_owned(),
        format!(r#"{{"type":"response_item","payload":{FUNCTION_CALL_ITEM}}}"#),
    ];
    let record = |seq: usize, rest: &str| format!(r#"{{"seq":{seq},"timestamp":1,{rest}}}"#);
    let toolq = [
        record(1, r#""id":"s","parentId":null,"type":"session""#),
        record(2, r#""id":"t","parentId":"s","type":"turn""#),
        record(
            3,
            r#""id":"c","parentId":"t","type":"tool_call","content":{"name":"n","input":{"x":1}},"metadata":{"tool_use_id":"a"}"#,
        ),
        record(
            4,
            r#""id":"d","parentId":"c","type":"tool_call","content":{"name":"a call within an agent"}"#,
        ),
    ];
    vec![
        shape(&claude_code, ClaudeCode, AnswerForm::Message),
        shape(&codex, Codex, AnswerForm::OpenAiResponses),
        shape(&toolq, Toolq, AnswerForm::Message),
    ]
}

/// Each shape is recognized, and naming its dialect with `--from` gives the same result.
#[test]
fn every_shape_yields_its_call() {
    for InputShape {
        text,
        dialect,
        form,
        layout,
    } in shapes()
    {
        for from in [None, Some(dialect)] {
            let recording = read_as(from, &text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(
                (recording.dialect(), recording.layout()),
                (dialect, layout),
                "{text}"
            );
            let turn = turns(&recording).pop().unwrap();
            assert_eq!(turn.answer_form, form, "{text}");
            let [call] = &turn.calls[..] else {
                panic!("{text}")
            };
            assert_eq!((&*call.id, &*call.name), ("a", "n"), "{text}");
            assert_eq!(call.input.as_ref().unwrap().text(), r#"{"x":1}"#, "{text}");
        }
    }
}

/// A valid document, cut at any byte, is an error with a position.
#[test]
fn a_truncated_document_is_an_error() {
    let documents = shapes();
    for shape in documents
        .iter()
        .filter(|shape| shape.layout == InputLayout::Document)
    {
        for end in 0..shape.text.len() {
            let (line, ..) = read_error(&shape.text[..end]);
            assert_eq!(line, 1, "{}", &shape.text[..end]);
        }
    }
}
