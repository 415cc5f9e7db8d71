//! What is on stdout isn't one message per line.

use std::process::exit;

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt, Says};
use crate::servers::script::legacy;
use crate::servers::wire::{Request, Wire};

/// The line that answers a call.
const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"TEXT"}]}}"#;

hostile_servers! {
    prints_a_banner => legacy().at_start(|wire| wire.line("Server listening on stdio\n[info] ready\n{not json"));
    ends_lines_with_crlf => legacy().at_start(|wire| wire.line_end = "\r\n");
    begins_with_a_byte_order_mark => legacy().at_start(|wire| wire.bytes("\u{FEFF}".as_bytes()));
    writes_blank_lines => legacy().on_call(|wire, call| { wire.bytes(b"\n \n\r\n\n"); wire.answer_call(call) });
    logs_as_json_on_stdout => legacy().on_call(|wire, call| {
        wire.line(&format!(r#"{{"level":"info","id":{},"call":"look"}}"#, call.id()));
        wire.line(r#"["a","b"]"#);
        wire.line("null");
        wire.answer_call(call);
    });
    writes_byte_by_byte => legacy().on_call(|wire, call| {
        call.apply();
        let line = ANSWER.replace("ID", &call.id().to_string()).replace("TEXT", &call.text()) + "\n";
        line.bytes().for_each(|byte| wire.bytes(&[byte]));
    });
    answers_without_a_line_break_and_ends => legacy().on_call(|wire, call| {
        if call.has_effect() { wire.line_end = "" }
        wire.answer_call(call);
        if call.has_effect() { exit(0) }
    });
    writes_half_an_answer_and_dies => legacy().on_call(|wire, call| {
        call.apply();
        write_half(wire, call);
        exit(3)
    }).ends(Fails("exited with code 3"), InDoubt("exited with code 3"));
    writes_half_an_answer_and_waits => legacy().on_call(|wire, call| {
        call.apply();
        write_half(wire, call);
    }).on_other(|wire, _| wire.line("")).times_out();
    spreads_a_message_over_lines => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, &ANSWER.replace(',', ",\n  "));
    }).times_out();
    writes_invalid_utf8_in_a_text => legacy().on_call(|wire, call| {
        call.apply();
        let id = call.id();
        wire.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"caf"#).as_bytes());
        wire.bytes(b"\xe9\"}]}}\n");
    }).ends(Says("caf\u{FFFD}"), Says("caf\u{FFFD}"));
    writes_invalid_utf8_between_messages => legacy().on_call(|wire, call| { wire.bytes(b"\xff\xfe{\"\n"); wire.answer_call(call) });
    writes_nul_bytes => legacy().on_call(|wire, call| { wire.bytes(&[0; 5000]); wire.line(""); wire.answer_call(call) });
    cuts_a_character_in_half => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, &ANSWER.replace("TEXT", r"smile \ud83d, or \udE00\ud83D\uDE00"));
    }).ends(Says("smile \u{FFFD}, or \u{FFFD}\u{1F600}"), Says("smile \u{FFFD}"));
    keeps_escaped_backslashes => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, &ANSWER.replace("TEXT", r"\\ud83d is \ud83d"));
    }).ends(Says("\\ud83d is \u{FFFD}"), Says("\\ud83d is \u{FFFD}"));
    writes_nan => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"n":NaN}}}"#);
    }).ends(Fails("can't be read"), InDoubt("can't be read"));
    writes_a_trailing_comma => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, &ANSWER.replace("]}", "],}"));
    }).ends(Fails("can't be read"), InDoubt("can't be read"));
    repeats_a_key_of_the_message => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, &ANSWER.replace(r#""id":ID"#, r#""id":ID,"id":ID"#));
    }).ends(Fails("can't be read"), InDoubt("can't be read"));
    repeats_a_key_of_the_result => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, &ANSWER.replace(r#""content":["#, r#""content":[],"content":["#));
    }).ends(Fails("can't be read"), InDoubt("can't be read"));
    nests_100_000_levels => legacy().on_call(|wire, call| {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let members = format!(r#""structuredContent":{{"deep":{deep}}},"content":["#);
        wire.answer_call_with_line(call, &ANSWER.replace(r#""content":["#, &members));
    });
    opens_100_000_levels => legacy().on_call(|wire, call| { wire.line(&"[".repeat(100_000)); wire.line(&r#"{"a":"#.repeat(100_000)); wire.answer_call(call) });
}

fn write_half(wire: &mut Wire, call: &Request) {
    let line = ANSWER.replace("ID", &call.id().to_string());
    wire.bytes(&line.as_bytes()[..line.len() / 2]);
}
