//! Documents that aren't answers, or never end.

use serde_json::{Value, json};

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt, Says};
use crate::servers::http_wire::HttpWire;
use crate::servers::script::{legacy_endpoint, modern_endpoint};
use crate::servers::wire::{Request, text_result};

const JSON: &str = "200 OK\r\ncontent-type: application/json";

hostile_servers! {
    responds_with_a_page => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "200 OK\r\ncontent-type: text/html", "<p>log in")).ends(Fails("text/html"), InDoubt("text/html"));
    responds_with_an_odd_type => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "200 OK\r\ncontent-type: \u{1b}[2J;;,", "{}")).ends(Fails("invalid HTTP header"), InDoubt("invalid HTTP header"));
    responds_without_a_type => modern_endpoint().on_call_request(|wire, call| { let text = wire.text_of(call); respond(wire, call, "200 OK", &text) });
    responds_with_nothing => modern_endpoint().on_call_request(|wire, call| respond(wire, call, JSON, "")).ends(Fails("without a body"), InDoubt("without a body"));
    accepts_a_call_without_an_answer => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "202 Accepted", "")).ends(Fails("202"), InDoubt("202"));
    responds_with_half_a_document => modern_endpoint().on_call_request(|wire, call| { let text = wire.text_of(call); respond(wire, call, JSON, &text[..text.len() / 2]) }).ends(Fails("answer"), InDoubt("answer"));
    responds_with_an_answer_to_another => modern_endpoint().on_call_request(|wire, call| {
        let other = json!({"jsonrpc": "2.0", "id": 77, "result": text_result("not yours")});
        respond(wire, call, JSON, &other.to_string());
    }).ends(Fails("answer"), InDoubt("answer"));
    responds_with_a_notification => modern_endpoint().on_call_request(|wire, call| respond(wire, call, JSON, r#"{"jsonrpc":"2.0","method":"notifications/message"}"#)).ends(Fails("answer"), InDoubt("answer"));
    responds_with_null_as_the_result => modern_endpoint().on_call_request(|wire, call| {
        let answer = json!({"jsonrpc": "2.0", "id": call.id(), "result": Value::Null});
        respond(wire, call, JSON, &answer.to_string());
    }).ends(Fails("neither a result nor an error"), InDoubt("neither a result nor an error"));
    responds_in_a_batch => legacy_endpoint().on_call_request(|wire, call| { let text = format!("[{}]", wire.text_of(call)); respond(wire, call, JSON, &text) });
    responds_with_invalid_utf8 => modern_endpoint().on_call_request(|wire, call| {
        wire.apply(call);
        let text = wire.text_of(call);
        let (start, end) = text.split_at(text.find("done").unwrap());
        let length = text.len() + 1;
        wire.bytes(format!("HTTP/1.1 {JSON}\r\ncontent-length: {length}\r\n\r\n{start}").as_bytes());
        wire.bytes(b"\xe9");
        wire.bytes(end.as_bytes());
    }).ends(Says("\u{FFFD}done"), Says("\u{FFFD}done"));
    responds_with_an_encoding => modern_endpoint().on_call_request(|wire, call| { let text = wire.text_of(call); respond(wire, call, "200 OK\r\ncontent-type: application/json\r\ncontent-encoding: br", &text) }).ends(Fails("encoded"), InDoubt("encoded"));
    responds_with_300_mb => modern_endpoint().memory_limit(400).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(format!("HTTP/1.1 {JSON}\r\ncontent-length: 314572800\r\n\r\n").as_bytes());
        while wire.bytes(&[b' '; 1 << 16]) {}
    }).ends(Fails("more than 64 MiB"), InDoubt("more than 64 MiB"));
    responds_without_end => modern_endpoint().memory_limit(400).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(format!("HTTP/1.1 {JSON}\r\n\r\n").as_bytes());
        while wire.bytes(&[b'['; 1 << 16]) {}
    }).ends(Fails("more than 64 MiB"), InDoubt("more than 64 MiB"));
    responds_too_slowly => modern_endpoint().on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(format!("HTTP/1.1 {JSON}\r\n\r\n").as_bytes());
        while wire.bytes(b" ") { std::thread::sleep(std::time::Duration::from_millis(20)) }
    }).times_out();
}

fn respond(wire: &mut HttpWire, call: &Request, head: &str, body: &str) {
    wire.apply(call);
    wire.respond(head, body);
}
