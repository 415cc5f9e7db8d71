//! Answers that don't belong to their request, come twice, late or not at all, or are no answers.

use serde_json::{Value, json};

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt};
use crate::servers::script::{legacy, modern};
use crate::servers::wire::{Request, Wire, text_result};

hostile_servers! {
    answers_with_the_id_as_text => legacy().on_call(|wire, call| answer_as(wire, call, &json!(call.id().to_string())));
    answers_with_the_id_as_a_float => legacy().on_call(|wire, call| {
        wire.answer_call_with_line(call, r#"{"jsonrpc":"2.0","id":ID.0,"result":{"content":[{"type":"text","text":"TEXT"}]}}"#);
    });
    answers_with_a_null_id => legacy().on_call(|wire, call| answer_as(wire, call, &Value::Null)).times_out();
    answers_without_an_id => legacy().on_call(|wire, call| {
        call.apply();
        wire.send(&json!({"jsonrpc": "2.0", "result": call.result()}));
    }).times_out();
    answers_with_other_ids => legacy().on_call(|wire, call| {
        for id in [json!(1_000_000), json!(-1), json!(1.5), json!("x"), json!([2]), json!({}), json!(true)] {
            wire.respond(&id, json!({"result": text_result("not yours")}));
        }
        wire.line(r#"{"jsonrpc":"2.0","id":99999999999999999999999,"result":{}}"#);
        call.apply();
    }).times_out();
    refuses_with_a_null_id => legacy().on_call(|wire, _| {
        wire.respond(&Value::Null, json!({"error": {"code": -32700, "message": "no JSON at all"}}));
    }).ends(Fails("no JSON at all"), Fails("no JSON at all"));
    answers_twice => legacy().on_call(|wire, call| {
        wire.answer_call(call);
        wire.answer(call, call.result());
    });
    answers_twice_and_differently => legacy().on_call(|wire, call| {
        wire.answer_call(call);
        wire.answer(call, text_result("something else"));
        wire.refuse(call, -1, "failed after all");
    });
    answers_before_it_is_asked => legacy().on_call(|wire, call| {
        let id = call.id().as_u64().unwrap();
        (1..50).for_each(|next| wire.respond(&json!(id + next), json!({"result": text_result("forged")})));
        wire.answer_call(call);
    });
    answers_after_it_was_canceled => legacy().on_call(|wire, call| { call.apply(); wire.kept.push(call.0.clone()) })
        .on_other(|wire, _| {
            for call in std::mem::take(&mut wire.kept) {
                wire.answer(&Request(call), text_result("late"));
            }
        }).times_out();
    answers_in_reverse => legacy().parallel().on_call(|wire, call| {
        if call.has_effect() { return wire.answer_call(call) }
        wire.kept.push(call.0.clone());
        if wire.kept.len() == 2 {
            for call in std::mem::take(&mut wire.kept).into_iter().rev() {
                wire.answer_call(&Request(call));
            }
        }
    });
    answers_in_a_batch => legacy().parallel().on_call(|wire, call| {
        call.apply();
        wire.kept.push(json!({"jsonrpc": "2.0", "id": call.id(), "result": call.result()}));
        if call.has_effect() || wire.kept.len() == 2 {
            let batch = Value::from(std::mem::take(&mut wire.kept));
            wire.send(&batch);
        }
    });
    never_answers => legacy().on_call(|_, call| call.apply()).times_out();
    never_answers_in_the_modern_era => modern().on_call(|_, call| call.apply()).times_out();
    answers_with_both_result_and_error => legacy().on_call(|wire, call| {
        call.apply();
        wire.respond(call.id(), json!({"result": call.result(), "error": {"code": 1, "message": "both at once"}}));
    }).ends(Fails("both at once"), Fails("both at once"));
    answers_with_neither => legacy().on_call(|wire, call| wire.respond(call.id(), json!({}))).ends(Fails("can't be read"), InDoubt("can't be read"));
    answers_null => legacy().on_call(|wire, call| wire.respond(call.id(), json!({"result": null}))).ends(Fails("can't be read"), InDoubt("can't be read"));
    answers_a_text => legacy().on_call(|wire, call| wire.respond(call.id(), json!({"result": "done"}))).ends(Fails("can't be read"), InDoubt("can't be read"));
    answers_a_list => legacy().on_call(|wire, call| wire.respond(call.id(), json!({"result": ["done"]}))).ends(Fails("can't be read"), InDoubt("can't be read"));
    refuses_with_a_text => legacy().on_call(|wire, call| wire.respond(call.id(), json!({"error": "out of cheese"}))).ends(Fails("out of cheese"), Fails("out of cheese"));
    refuses_without_a_code => legacy().on_call(|wire, call| wire.respond(call.id(), json!({"error": {"message": "out of cheese"}}))).ends(Fails("out of cheese"), Fails("out of cheese"));
    refuses_without_a_message => legacy().on_call(|wire, call| wire.refuse(call, 0, "")).ends(Fails("no message"), Fails("no message"));
    refuses_with_odd_codes => legacy().on_call(|wire, call| {
        let code = [json!(i64::MIN), json!(-32000.5), json!("E42")][usize::try_from(call.number()).unwrap() - 1].clone();
        wire.respond(call.id(), json!({"error": {"code": code, "message": "out of cheese", "data": [code]}}));
    }).ends(Fails("out of cheese"), Fails("out of cheese"));
    refuses_at_length => legacy().on_call(|wire, call| wire.refuse(call, 1, &"no \u{1b}[2J".repeat(1 << 18))).ends(Fails("no"), Fails("no"));
    asks_for_input_of_a_user => modern().on_call(|wire, call| {
        wire.answer(call, json!({"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create"}}}));
    }).ends(Fails("input from a user"), Fails("input from a user"));
    wants_its_state_back_once => modern().on_call(|wire, call| {
        let state = &call.0["params"]["requestState"];
        if *state == json!("a \"b\"\n") { return wire.answer_call(call) }
        wire.answer(call, json!({"resultType": "input_required", "requestState": "a \"b\"\n"}));
    });
    wants_its_state_back_for_ever => modern().on_call(|wire, call| {
        wire.answer(call, json!({"resultType": "input_required", "requestState": "again"}));
    }).ends(Fails("input"), Fails("input"));
    begins_a_task => modern().on_call(|wire, call| {
        call.apply();
        wire.answer(call, json!({"resultType": "task", "task": {"taskId": "t1", "status": "working"}}));
    }).ends(Fails("`task`"), InDoubt("`task`"));
    answers_with_an_unknown_kind_of_result => modern().on_call(|wire, call| {
        wire.answer(call, json!({"resultType": "\u{1b}[2Jmaybe", "content": []}));
    }).ends(Fails("maybe"), InDoubt("maybe"));
}

fn answer_as(wire: &mut Wire, call: &Request, id: &Value) {
    call.apply();
    wire.respond(id, json!({"result": call.result()}));
}
