use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use toolq_core::json::Input;
use toolq_core::types::{CallRef, Effect};

use super::*;

const TURN: usize = 3;

fn turn_id() -> LineId {
    LineId(json!("turn-a"))
}

/// The calls of a host with one turn in flight.
fn host_calls() -> HostCalls {
    let (requests, _) = mpsc::unbounded_channel();
    let turns = OpenTurns::with_turn(TURN, turn_id(), requests);
    HostCalls::new(&Arc::new(turns))
}

fn host_call() -> HostCall {
    HostCall {
        call: CallRef {
            turn: TURN,
            position: 0,
            tool_use_id: "a".to_owned(),
            tool_name: "look_up".into(),
            batch: None,
            parent: None,
        },
        effect: Effect::Read,
        input: Input::parse("{}").unwrap(),
        attempt: 1,
        idempotency_key: "key".into(),
        timeout: Duration::from_secs(1),
    }
}

fn result(text: &str) -> HostCallResult {
    let line = json!({"type": "result", "id": "t", "tool_use_id": "a", "content": text});
    serde_json::from_str(&line.to_string()).unwrap()
}

#[test]
fn a_result_that_arrives_while_its_attempt_is_given_up_is_dropped() {
    let calls = host_calls();
    let call = host_call();
    let mut awaited = calls.send(&call, turn_id()).unwrap();
    // The attempt has timed out, and the call isn't abandoned yet.
    awaited.result.close();
    calls.deliver(&turn_id(), result("found")).unwrap();
}

#[test]
fn a_result_answers_one_call() {
    let calls = host_calls();
    let call = host_call();
    let mut attempt = calls.run(&call);
    let mut context = Context::from_waker(Waker::noop());
    assert!(attempt.as_mut().poll(&mut context).is_pending());
    calls.deliver(&turn_id(), result("found")).unwrap();
    let reply = attempt.as_mut().poll(&mut context);
    assert!(
        matches!(
            reply,
            Poll::Ready(HostReply::Done {
                is_error: false,
                ..
            })
        ),
        "{reply:?}"
    );
    assert!(calls.deliver(&turn_id(), result("again")).is_err());
}
