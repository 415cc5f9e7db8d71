//! Programs that ask the client for something, and wait for the answer before they continue.

use serde_json::{Value, json};

use crate::hostile_servers;
use crate::servers::script::{legacy, modern};
use crate::servers::wire::{Request, Wire};

hostile_servers! {
    asks_for_roots => legacy().on_call(|wire, call| ask_first(wire, call, "roots/list"));
    asks_for_sampling => legacy().on_call(|wire, call| ask_first(wire, call, "sampling/createMessage"));
    asks_for_elicitation => legacy().on_call(|wire, call| ask_first(wire, call, "elicitation/create"));
    asks_although_it_is_modern => modern().on_call(|wire, call| ask_first(wire, call, "roots/list"));
    asks_for_a_method_with_an_odd_name => legacy().on_call(|wire, call| ask_first(wire, call, &"\u{1b}[2J\"\\".repeat(10_000)));
    asks_to_call_a_tool => legacy().on_call(|wire, call| ask_first(wire, call, "tools/call"));
    asks_with_the_id_of_the_call => legacy().on_call(|wire, call| {
        let answer = wire.ask(call.id(), "roots/list");
        assert_eq!(answer.0["error"]["code"], -32601);
        wire.answer_call(call);
    });
    pings_before_it_answers => legacy().on_call(|wire, call| {
        for id in [json!(0), json!("a \"b\""), json!(-7), json!(u64::MAX)] {
            let answer = wire.ask(&id, "ping");
            assert_eq!(answer.0["result"], json!({}));
        }
        wire.answer_call(call);
    });
    pings_in_the_handshake => legacy().on_initialize(|wire, request| {
        let answer = wire.ask(&json!("p"), "ping");
        assert_eq!(answer.0["result"], json!({}));
        wire.answer_initialize(request);
    });
    asks_with_an_id_that_is_none => legacy().on_call(|wire, call| {
        for id in [Value::Null, json!(1.5), json!([1]), json!({}), json!(true)] {
            wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        }
        wire.answer_call(call);
    });
    cancels_the_call_itself => legacy().on_call(|wire, call| {
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call.id()}}));
        wire.answer_call(call);
    });
    waits_for_its_roots_to_end => legacy().at_end(|wire| {
        wire.send(&json!({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"}));
        std::thread::sleep(std::time::Duration::from_mins(10));
    });
}

fn ask_first(wire: &mut Wire, call: &Request, method: &str) {
    let answer = wire.ask(&json!("own"), method);
    assert_eq!(answer.0["error"]["code"], -32601);
    wire.answer_call(call);
}
