//! Connections that break, hang, or don't carry HTTP.

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt, OneOf, Served};
use crate::servers::http_wire::HttpWire;
use crate::servers::script::{legacy_endpoint, modern_endpoint};
use crate::servers::wire::Request;

hostile_servers! {
    ends_the_connection => modern_endpoint().on_call_request(|wire, call| break_off(wire, call, "")).ends(Fails("MCP server"), InDoubt("MCP server"));
    ends_the_connection_in_the_legacy_era => legacy_endpoint().on_call_request(|wire, call| break_off(wire, call, "")).ends(Fails("MCP server"), InDoubt("MCP server"));
    ends_the_connection_before_the_effect => modern_endpoint().on_call_request(|wire, _| wire.break_off("")).ends(Fails("MCP server"), InDoubt("MCP server"));
    ends_the_connection_in_the_head => modern_endpoint().on_call_request(|wire, call| break_off(wire, call, "HTTP/1.1 200 OK\r\ncontent-ty")).ends(Fails("MCP server"), InDoubt("MCP server"));
    ends_the_connection_in_the_body => modern_endpoint().on_call_request(|wire, call| break_off(wire, call, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"js")).ends(Fails("MCP server"), InDoubt("MCP server"));
    sends_a_bad_chunk => modern_endpoint().on_call_request(|wire, call| break_off(wire, call, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")).ends(Fails("MCP server"), InDoubt("MCP server"));
    sends_a_chunk_of_an_absurd_size => modern_endpoint().on_call_request(|wire, call| break_off(wire, call, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n")).ends(Fails("MCP server"), InDoubt("MCP server"));
    speaks_something_else => modern_endpoint().on_call_request(|wire, call| break_off(wire, call, "SSH-2.0-OpenSSH_9.2\r\n")).ends(Fails("MCP server"), InDoubt("MCP server"));
    sends_headers_without_end => modern_endpoint().memory_limit(150).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 200 OK\r\n");
        while wire.bytes("x: y\r\n".repeat(1000).as_bytes()) {}
    }).ends(Fails("MCP server"), InDoubt("MCP server"));
    sends_a_header_without_end => modern_endpoint().memory_limit(150).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 200 OK\r\nx: ");
        while wire.bytes(&[b'y'; 1 << 16]) {}
    }).ends(Fails("MCP server"), InDoubt("MCP server"));
    sends_headers_slowly => modern_endpoint().on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 200 OK\r\n");
        while wire.bytes(b"x: y\r\n") { std::thread::sleep(std::time::Duration::from_millis(50)) }
    }).times_out();
    says_continue_without_end => modern_endpoint().on_call_request(|wire, call| {
        wire.apply(call);
        while wire.bytes(b"HTTP/1.1 100 Continue\r\n\r\n") { std::thread::sleep(std::time::Duration::from_millis(20)) }
    }).times_out();
    never_responds => modern_endpoint().on_call_request(|wire, call| { wire.apply(call); wire.hang() }).times_out();
    never_responds_in_the_legacy_era => legacy_endpoint().on_call_request(|wire, call| { wire.apply(call); wire.hang() }).times_out();
    never_ends_a_response => modern_endpoint().on_call_request(|wire, call| {
        wire.apply(call);
        let text = wire.text_of(call);
        wire.bytes(format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {text}\n\n").as_bytes());
        wire.hang();
    });
    responds_twice => modern_endpoint().on_call_request(|wire, call| {
        wire.answer_call(call);
        wire.answer(call, crate::servers::wire::text_result("again"));
    }).ends(OneOf(&[Served, Fails("isn't an answer to the request")]), OneOf(&[Served, InDoubt("isn't an answer to the request")]))
        .again(OneOf(&[Served, Fails("isn't an answer to the request")]));
    responds_in_an_old_version => modern_endpoint().on_call_request(|wire, call| {
        let text = wire.text_of(call);
        break_off(wire, call, &format!("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{text}"));
    });
    is_never_ready => modern_endpoint().keys("startup: 1s").on_handshake_request(|wire, _| wire.hang()).all(Fails("wasn't ready after 1s"));
    breaks_off_in_the_handshake => modern_endpoint().on_handshake_request(|wire, _| wire.break_off("HTTP/1.1 200 OK\r\n")).all(Fails("MCP server"));
}

/// Does what the call asks for, then ends the connection.
fn break_off(wire: &mut HttpWire, call: &Request, text: &str) {
    wire.apply(call);
    wire.break_off(text);
}
