//! Streamed responses of an agent's API: however their bytes arrive, they assemble into the same body, whose calls are
//! those that were handed out early and those of the unstreamed response.

use toolq_core::json::to_json_line;
use toolq_core::transcript::{ResponseAssembler, ResponseError, StreamEvent, parse_response};
use toolq_core::types::{Api, Call};

use crate::choices::{Choices, cut_at_random};
use crate::streams::summarize_call;
use crate::vendor_message::{Vendor, VendorMessage};

/// Assembles a stream: the bytes after the first, or a message built from them. The first selects that and the API.
pub fn streamed_response(data: &[u8]) {
    let mut choices = Choices::new(data);
    let shape = choices.byte();
    let (api, vendor) = match shape & 1 {
        0 => (Api::Anthropic, Vendor::Anthropic),
        _ => (Api::OpenAiChat, Vendor::Chat),
    };
    if shape & 2 == 0 {
        check_pieces(api, choices.rest());
    } else {
        check_message(api, &VendorMessage::from_choices(vendor, &mut choices));
    }
}

fn check_pieces(api: Api, text: &[u8]) {
    let whole = assemble(api, [text]);
    assert_eq!(assemble(api, text.chunks(1)), whole, "byte by byte");
    assert_eq!(assemble(api, cut_at_random(text)), whole, "in pieces");
    check_early_calls(api, &whole);
}

/// The calls that were handed out are those of the body.
fn check_early_calls(api: Api, assembled: &AssembledResponse) {
    let Ok(Some(body)) = &assembled.body else {
        return;
    };
    if let Ok((_, turn)) = parse_response(api, body, 0) {
        let calls: Vec<String> = turn.calls.iter().map(summarize_call).collect();
        assert_eq!(assembled.calls, calls, "{body}");
    }
}

fn check_message(api: Api, message: &VendorMessage) {
    let (stream, document) = (message.stream(), message.document());
    let whole = assemble(api, [stream.as_bytes()]);
    assert_eq!(
        assemble(api, cut_at_random(stream.as_bytes())),
        whole,
        "in pieces"
    );
    check_early_calls(api, &whole);
    let body = whole
        .body
        .unwrap_or_else(|error| panic!("{error:?}\n{stream}"));
    let body = body.unwrap_or_else(|| panic!("no body\n{stream}"));
    let (response, turn) = parse_response(api, &body, 0).unwrap();
    let (expected, expected_turn) = parse_response(api, &document, 0).unwrap();
    assert_eq!(
        summarize_meaning(&turn.calls),
        summarize_meaning(&expected_turn.calls),
        "{stream}\n{document}"
    );
    assert_eq!(turn.ending, expected_turn.ending);
    assert_eq!(response.stop_reason, expected.stop_reason);
    assert_eq!(response.text, expected.text);
}

/// Everything about calls except the whitespace in their inputs, which a response with line breaks loses.
fn summarize_meaning(calls: &[Call]) -> Vec<String> {
    let summarize = |call: &Call| {
        let input = call.input.as_ref().ok();
        let line = input.map(|input| to_json_line(&format!("{}\n", input.text())).into_owned());
        format!("{:?} {:?} {line:?}", call.id, call.name)
    };
    calls.iter().map(summarize).collect()
}

/// What became of a stream.
#[derive(Debug, PartialEq)]
struct AssembledResponse {
    calls: Vec<String>,
    body: Result<Option<String>, ResponseError>,
}

fn assemble<'a>(api: Api, pieces: impl IntoIterator<Item = &'a [u8]>) -> AssembledResponse {
    let mut assembler = ResponseAssembler::new(api, 0);
    let mut calls = Vec::new();
    let mut take_calls = |assembler: &mut ResponseAssembler| {
        let events = std::iter::from_fn(|| assembler.next_event());
        calls.extend(events.filter_map(|event| match event {
            StreamEvent::CallComplete(call) => Some(summarize_call(&call)),
            _ => None,
        }));
    };
    let mut failure = None;
    for piece in pieces {
        if let Err(error) = assembler.push(piece) {
            failure = Some(error);
            break;
        }
        take_calls(&mut assembler);
    }
    let body = failure.map_or_else(|| assembler.finish(), Err);
    // After an error, how many calls had been handed out depends on the pieces.
    if body.is_err() {
        calls.clear();
        return AssembledResponse { calls, body };
    }
    take_calls(&mut assembler);
    let unfinished = assembler.abort();
    let is_complete = matches!(body, Ok(Some(_)));
    assert!(
        !is_complete || unfinished.is_empty(),
        "a complete response has unfinished calls"
    );
    AssembledResponse { calls, body }
}
