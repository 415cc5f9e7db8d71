//! Statuses that aren't success.

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt};
use crate::servers::http_wire::HttpWire;
use crate::servers::script::{legacy_endpoint, modern_endpoint};
use crate::servers::wire::Request;

hostile_servers! {
    redirects_elsewhere => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "307 Temporary Redirect\r\nlocation: http://evil.example/?token=1")).ends(Fails("http://evil.example"), Fails("http://evil.example"));
    redirects_to_a_file => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "302 Found\r\nlocation: file:///etc/passwd")).ends(Fails("redirect"), Fails("redirect"));
    redirects_to_itself => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "308 Permanent Redirect\r\nlocation: /mcp")).ends(Fails("redirect"), Fails("redirect"));
    fails_with_500 => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "500 Internal Server Error")).ends(Fails("500"), Fails("500"));
    fails_with_503_for_a_century => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "503 Service Unavailable\r\nretry-after: 99999999999")).ends(Fails("503"), Fails("503"));
    wants_a_login => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"http://evil.example\"")).ends(Fails("401"), Fails("401"));
    answers_with_an_unknown_status => modern_endpoint().on_call_request(|wire, call| respond(wire, call, "799 Whatever")).ends(Fails("799"), Fails("799"));
    switches_protocols => modern_endpoint().on_call_request(|wire, call| { wire.apply(call); wire.break_off("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n") }).ends(Fails("101 Switching Protocols"), Fails("101 Switching Protocols"));
    answers_without_content => modern_endpoint().on_call_request(|wire, call| { wire.apply(call); wire.bytes(b"HTTP/1.1 204 No Content\r\n\r\n"); }).ends(Fails("204"), InDoubt("204"));
    fails_at_length => modern_endpoint().memory_limit(100).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n\r\n");
        while wire.bytes(&[b'!'; 1 << 16]) {}
    }).ends(Fails("!!!"), Fails("!!!"));
    forgets_a_session_that_never_was => legacy_endpoint().on_call_request(|wire, call| respond(wire, call, "404 Not Found")).ends(Fails("404"), Fails("404"));
    begins_an_odd_session => legacy_endpoint().on_handshake_request(|wire, request| {
        if request.method() == "initialize" {
            let text = wire.answer_text(request, crate::servers::wire::initialization("2025-11-25"));
            let id = "\u{7f}!".repeat(10) + &"s".repeat(4000);
            wire.respond(&format!("200 OK\r\ncontent-type: application/json\r\nmcp-session-id: {}", id.replace('\u{7f}', "")), &text);
        } else {
            wire.answer_handshake(request);
        }
    });
    refuses_its_own_version => modern_endpoint().on_call_request(|wire, call| wire.refuse("400 Bad Request", call, -32022, "unsupported")).ends(Fails("unsupported"), Fails("unsupported"));
    mismatches_every_header => modern_endpoint().on_call_request(|wire, call| wire.refuse("400 Bad Request", call, -32020, "header mismatch")).ends(Fails("header mismatch"), Fails("header mismatch"));
}

/// Does what the call asks for, and says something else.
fn respond(wire: &mut HttpWire, call: &Request, head: &str) {
    wire.apply(call);
    wire.respond(head, "");
}
