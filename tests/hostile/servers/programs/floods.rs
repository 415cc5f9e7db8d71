//! Too much of something. toolq's memory must not grow with it.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt};
use crate::servers::script::legacy;
use crate::servers::wire::Wire;

/// How much memory a debug build of toolq may need, in MiB, where nothing long has to be kept.
const LITTLE: u64 = 100;
/// The same where a line of up to 64 MiB is read.
const ONE_LINE: u64 = 250;

hostile_servers! {
    answers_with_300_mb => legacy().memory_limit(ONE_LINE).on_call(|wire, call| {
        call.apply();
        let id = call.id();
        wire.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#).as_bytes());
        write_megabytes(wire, if call.has_effect() { 300 } else { 70 });
        wire.bytes(b"\"}]}}\n");
    }).ends(Fails("too long"), InDoubt("too long"));
    writes_a_line_of_300_mb => legacy().memory_limit(ONE_LINE).on_call(|wire, call| {
        if call.has_effect() {
            write_megabytes(wire, 300);
            wire.line("");
        }
        wire.answer_call(call);
    });
    writes_a_line_without_end => legacy().memory_limit(ONE_LINE).on_call(|wire, call| {
        call.apply();
        while !wire.has_message() { write_megabytes(wire, 1) }
        wire.line("");
    }).times_out();
    writes_noise_without_end => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        call.apply();
        let noise = "noise\n".repeat(10_000);
        while !wire.has_message() { wire.bytes(noise.as_bytes()) }
    }).times_out();
    writes_noise_before_it_reads => legacy().at_start(|wire| {
        let noise = "noise\n".repeat(100_000);
        wire.bytes(noise.as_bytes());
    });
    writes_500_000_lines_of_noise => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        if call.has_effect() { wire.bytes("noise\n".repeat(500_000).as_bytes()) }
        wire.answer_call(call);
    });
    writes_10_mb_to_stderr => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        let line = "complaint\n".repeat(10_000);
        (0..100).for_each(|_| std::io::stderr().write_all(line.as_bytes()).unwrap());
        wire.answer_call(call);
    });
    reports_progress_10_000_times => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        let token = &call.0["params"]["_meta"]["progressToken"];
        notify(wire, 10_000, |n| json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": n, "total": 0, "message": "step"}}));
        wire.answer_call(call);
    });
    reports_progress_without_end => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        call.apply();
        let token = &call.0["params"]["_meta"]["progressToken"];
        let mut done = 0;
        while !wire.has_message() {
            notify(wire, 100, |n| json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": done + n}}));
            done += 100;
        }
    }).times_out();
    reports_the_progress_of_others => legacy().on_call(|wire, call| {
        for token in [json!("a"), json!(-1), json!(null), json!(1e300), json!({"a": 1}), json!(0)] {
            notify(wire, 10, |n| json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": n}}));
        }
        wire.answer_call(call);
    });
    reports_odd_progress => legacy().on_call(|wire, call| {
        let token = &call.0["params"]["_meta"]["progressToken"];
        for progress in [json!("half"), json!(-5), json!(1e308), json!(2), json!(null)] {
            notify(wire, 1, |_| json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": progress, "total": 0, "message": "\u{1b}[2J\u{0}".repeat(1000)}}));
        }
        wire.answer_call(call);
    });
    announces_changes_10_000_times => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        notify(wire, 10_000, |_| json!({"method": "notifications/tools/list_changed"}));
        wire.answer_call(call);
    });
    logs_10_000_messages => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        notify(wire, 10_000, |_| json!({"method": "notifications/message", "params": {"level": "emergency", "data": "x"}}));
        wire.answer_call(call);
    });
    answers_10_000_requests_that_nobody_made => legacy().memory_limit(LITTLE).on_call(|wire, call| {
        notify(wire, 10_000, |n| json!({"id": 1_000_000 + n, "result": {}}));
        wire.answer_call(call);
    });
    asks_10_000_times_and_reads_nothing => legacy().memory_limit(76).on_call(|wire, call| {
        if call.number() == 1 {
            notify(wire, 10_000, |n| json!({"id": n, "method": "x".repeat(4000)}));
        }
        wire.answer_call(call);
    });
}

fn notify(wire: &mut Wire, count: u64, message: impl Fn(u64) -> Value) {
    let mut lines = Vec::new();
    for number in 0..count {
        let mut message = message(number);
        message["jsonrpc"] = json!("2.0");
        serde_json::to_writer(&mut lines, &message).unwrap();
        lines.push(b'\n');
        if lines.len() > 1 << 16 {
            wire.bytes(&lines);
            lines.clear();
        }
    }
    wire.bytes(&lines);
}

fn write_megabytes(wire: &mut Wire, count: usize) {
    let megabyte = vec![b'x'; 1 << 20];
    (0..count).for_each(|_| wire.bytes(&megabyte));
}
