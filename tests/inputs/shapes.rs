//! The documented shapes.

use toolq_core::types::{
    Dialect, Dialect::Anthropic, Dialect::ClaudeCode, Dialect::Codex, Dialect::Toolq,
};
use toolq_core::types::{Form, Layout};

use super::{error, read_as, turns};

pub const USE: &str = r#"{"type":"tool_use","id":"a","name":"n","input":{"x":1}}"#;
pub const CHAT_CALL: &str =
    r#"{"id":"a","type":"function","function":{"name":"n","arguments":"{\"x\":1}"}}"#;
pub const ITEM: &str =
    r#"{"type":"function_call","id":"fc","call_id":"a","name":"n","arguments":"{\"x\":1}"}"#;
const ASKED: &str = r#"{"role":"user","content":"hi"}"#;

/// A text with one call of its own, the turn's form, and the input's layout.
pub struct Shape {
    pub text: String,
    pub dialect: Dialect,
    form: Form,
    pub layout: Layout,
}

fn shape(text: String, dialect: Dialect, form: Form, layout: Layout) -> Shape {
    Shape {
        text,
        dialect,
        form,
        layout,
    }
}

/// Every shape.
pub fn shapes() -> Vec<Shape> {
    [anthropic(), chat(), responses(), logs()]
        .into_iter()
        .flatten()
        .collect()
}

fn message() -> String {
    format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"t"}},{USE}]}}"#)
}

fn response() -> String {
    message().replacen(
        '{',
        r#"{"type":"message","id":"m","stop_reason":"tool_use","#,
        1,
    )
}

fn anthropic() -> Vec<Shape> {
    let document = |text, form| shape(text, Anthropic, form, Layout::Document);
    let lines = |text, form| shape(text, Anthropic, form, Layout::Lines);
    let message = message();
    vec![
        document(response(), Form::Message),
        document(message.clone(), Form::Message),
        document(format!("[{USE}]"), Form::Blocks),
        document(USE.to_owned(), Form::Block),
        document(
            format!(r#"{{"messages":[{ASKED},{message}]}}"#),
            Form::Message,
        ),
        document(format!("[{ASKED},{message}]"), Form::Message),
        lines(format!("{ASKED}\n{message}\n"), Form::Message),
        lines(format!("{ASKED} {USE}"), Form::Block),
    ]
}

fn chat() -> Vec<Shape> {
    let of = |text, layout| shape(text, Dialect::OpenAiChat, Form::OpenAiChat, layout);
    let message = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{CHAT_CALL}]}}"#);
    vec![
        of(
            format!(r#"{{"choices":[{{"message":{message}}}]}}"#),
            Layout::Document,
        ),
        of(message.clone(), Layout::Document),
        of(format!("[{ASKED},{message}]"), Layout::Document),
        of(
            format!(r#"{{"messages":[{ASKED},{message}]}}"#),
            Layout::Document,
        ),
        of(
            format!(r#"[{{"task":1,"traj":[{ASKED},{message}]}}]"#),
            Layout::Document,
        ),
        of(format!("{ASKED}\n{message}"), Layout::Lines),
    ]
}

fn responses() -> Vec<Shape> {
    let of = |text, layout| {
        shape(
            text,
            Dialect::OpenAiResponses,
            Form::OpenAiResponses,
            layout,
        )
    };
    let items = format!(r#"{{"type":"reasoning","id":"rs","summary":[]}},{ITEM}"#);
    let response = format!(r#"{{"object":"response","error":null,"output":[{items}]}}"#);
    vec![
        of(response, Layout::Document),
        of(format!("[{ASKED},{items}]"), Layout::Document),
        of(
            format!(r#"{{"model":"m","input":[{ASKED},{items}]}}"#),
            Layout::Document,
        ),
        of(ITEM.to_owned(), Layout::Document),
        of(format!("{ASKED}\n{ITEM}"), Layout::Lines),
    ]
}

fn logs() -> Vec<Shape> {
    let of =
        |lines: &[String], dialect, form| shape(lines.join("\n"), dialect, form, Layout::Lines);
    let answer = format!(
        r#"{{"type":"assistant","uuid":"u","message":{}}}"#,
        response()
    );
    let claude_code = [r#"{"type":"summary"}"#.to_owned(), answer];
    let codex = [
        r#"{"type":"session_meta","payload":{}}"#.to_owned(),
        format!(r#"{{"type":"response_item","payload":{ITEM}}}"#),
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
            r#""id":"d","parentId":"c","type":"tool_call","content":{"name":"an agent's own"}"#,
        ),
    ];
    vec![
        of(&claude_code, ClaudeCode, Form::Message),
        of(&codex, Codex, Form::OpenAiResponses),
        of(&toolq, Toolq, Form::Message),
    ]
}

/// FAULTS 14: one documented set of shapes; `--from` reads them as recognition does.
#[test]
fn every_shape_has_its_call() {
    for Shape {
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
            assert_eq!(turn.form, form, "{text}");
            let [call] = &turn.calls[..] else {
                panic!("{text}")
            };
            assert_eq!((&*call.id, &*call.name), ("a", "n"), "{text}");
            assert_eq!(call.input.as_ref().unwrap().text(), r#"{"x":1}"#, "{text}");
        }
    }
}

/// FAULTS 2: a valid document, cut at every byte, is an error with a place.
#[test]
fn a_cut_document_is_an_error() {
    let documents = shapes();
    for shape in documents
        .iter()
        .filter(|shape| shape.layout == Layout::Document)
    {
        for end in 0..shape.text.len() {
            let (line, ..) = error(&shape.text[..end]);
            assert_eq!(line, 1, "{}", &shape.text[..end]);
        }
    }
}
