//! Streams of events that are broken, or have more than the answer.

use serde_json::{Value, json};

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt};
use crate::servers::http_wire::HttpWire;
use crate::servers::script::{legacy_endpoint, modern_endpoint};
use crate::servers::wire::{Request, text_result};

/// An event with an id, from which a stream can be resumed.
const PRIMING: &str = "id: 1\nretry: 1\ndata:\n\n";

hostile_servers! {
    streams_with_odd_line_ends => modern_endpoint().on_call_request(|wire, call| stream(wire, call, "\u{FEFF}: hi\r\rid: 1\revent: message\rdata:TEXT\r\r"));
    streams_comments_before_the_answer => modern_endpoint().on_call_request(|wire, call| { let comments = ": still here\n\n".repeat(10_000); stream(wire, call, &format!("{comments}data: TEXT\n\n")) });
    streams_noise_before_the_answer => modern_endpoint().on_call_request(|wire, call| stream(wire, call, "data: ready\n\nevent: ping\ndata: {}\n\nwhat: ever\n\n\u{0}: x\n\ndata: TEXT\n\n"));
    streams_the_answer_over_lines => modern_endpoint().on_call_request(|wire, call| {
        let text = wire.text_of(call).replace(',', ",\ndata: ");
        stream(wire, call, &format!("data: {text}\n\n"));
    });
    streams_the_answer_twice => modern_endpoint().on_call_request(|wire, call| stream(wire, call, "data: TEXT\n\ndata: TEXT\n\n"));
    streams_without_the_last_blank_line => modern_endpoint().on_call_request(|wire, call| stream(wire, call, "data: TEXT\n"));
    streams_nothing => modern_endpoint().on_call_request(|wire, call| stream(wire, call, "")).ends(Fails("ended before the answer"), InDoubt("ended before the answer"));
    streams_half_an_answer => modern_endpoint().on_call_request(|wire, call| stream(wire, call, "data: {\"jsonrpc\":\"2.0\",\"id\"")).ends(Fails("ended before the answer"), InDoubt("ended before the answer"));
    streams_the_answers_of_others => modern_endpoint().on_call_request(|wire, call| {
        let id = call.id().as_u64().unwrap();
        let forged = (1..20).map(|next| event(&json!({"jsonrpc": "2.0", "id": id + next, "result": text_result("forged")})));
        let events: String = forged.collect();
        stream(wire, call, &format!("{events}data: TEXT\n\n"));
    });
    streams_invalid_utf8 => modern_endpoint().on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 12\r\n\r\ndata: \xff\xfe\n\n\n\n");
    }).ends(Fails("UTF-8"), InDoubt("UTF-8"));
    streams_progress_10_000_times => modern_endpoint().memory_limit(100).on_call_request(|wire, call| {
        let token = &call.0["params"]["_meta"]["progressToken"];
        let events: String = (0..10_000).map(|progress| event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": progress}}))).collect();
        stream(wire, call, &format!("{events}data: TEXT\n\n"));
    });
    streams_an_event_without_end => modern_endpoint().memory_limit(400).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        let line = format!("data: {}\n", "x".repeat(100_000));
        while wire.bytes(line.as_bytes()) {}
    }).ends(Fails("more than 64 MiB"), InDoubt("more than 64 MiB"));
    streams_without_end => modern_endpoint().memory_limit(100).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        while wire.bytes("data: x\n\n".repeat(1000).as_bytes()) {}
    }).times_out();
    streams_requests_without_end => legacy_endpoint().memory_limit(100).on_call_request(|wire, call| {
        wire.apply(call);
        wire.bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        let event = "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}\n\n";
        while wire.bytes(event.repeat(100).as_bytes()) {}
    }).times_out();
    breaks_off_again_and_again => legacy_endpoint().on_call_request(|wire, call| stream(wire, call, PRIMING))
        .on_get(|wire, _| wire.stream_events(PRIMING)).ends(Fails("ended before the answer"), InDoubt("ended before the answer"));
    breaks_off_with_new_ids_without_end => legacy_endpoint().on_call_request(|wire, call| stream(wire, call, PRIMING))
        .on_get(|wire, _| {
            let next = wire.headers["last-event-id"].parse::<u64>().unwrap() + 1;
            wire.stream_events(&format!("id: {next}\ndata:\n\n"));
        }).times_out();
    wants_a_century_before_it_goes_on => legacy_endpoint().on_call_request(|wire, call| stream(wire, call, "id: 1\nretry: 18446744073709551615\ndata:\n\n")).times_out();
    hangs_when_it_should_go_on => legacy_endpoint().on_call_request(|wire, call| stream(wire, call, PRIMING)).on_get(|wire, _| wire.hang()).times_out();
    goes_on_with_a_page => legacy_endpoint().on_call_request(|wire, call| stream(wire, call, PRIMING))
        .on_get(|wire, _| wire.respond("200 OK\r\ncontent-type: text/html", "<p>log in")).ends(Fails("ended before the answer"), InDoubt("ended before the answer"));
    goes_on_with_the_answers_of_others => legacy_endpoint().on_call_request(|wire, call| stream(wire, call, PRIMING)).on_get(|wire, _| {
        let answers = (50..70).map(|id| event(&json!({"jsonrpc": "2.0", "id": id, "result": text_result("forged")})));
        wire.stream_events(&answers.collect::<String>());
    }).ends(Fails("ended before the answer"), InDoubt("ended before the answer"));
    goes_on_without_end => legacy_endpoint().memory_limit(400).on_call_request(|wire, call| stream(wire, call, PRIMING)).on_get(|wire, _| {
        wire.bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        let line = format!("data: {}\n", "x".repeat(100_000));
        while wire.bytes(line.as_bytes()) {}
    }).ends(Fails("more than 64 MiB"), InDoubt("more than 64 MiB"));
    has_ids_that_no_header_can_have => legacy_endpoint().on_call_request(|wire, call| stream(wire, call, "id: \u{1b}[2J\u{7f}\ndata:\n\n")).ends(Fails("ended before the answer"), InDoubt("ended before the answer"));
    streams_requests_of_its_own => legacy_endpoint().on_call_request(|wire, call| {
        stream(wire, call, "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\ndata: TEXT\n\n");
    });
}

/// Does what the call asks for, and streams events. `TEXT` is replaced by the answer.
fn stream(wire: &mut HttpWire, call: &Request, events: &str) {
    wire.apply(call);
    let text = wire.text_of(call);
    wire.stream_events(&events.replace("TEXT", &text));
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}
