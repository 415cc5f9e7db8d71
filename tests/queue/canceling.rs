//! `toolq queue cancel`.

use serde_json::Value;

use crate::queue_sandbox::{QUEUE, QueueSandbox};
use crate::support::waiting::wait_until;

/// Returns the turn that a worker has.
fn running_turn(sandbox: &QueueSandbox) -> String {
    let mut turn = None;
    wait_until("a worker says what it runs", || {
        let status = sandbox.run(&["queue", "status", QUEUE, "--format", "json"]);
        let status: Value = serde_json::from_str(&status.assert_exit(0).stdout).unwrap();
        turn = status["workers"][0]["turn"].as_str().map(str::to_owned);
        turn.is_some()
    });
    turn.unwrap()
}

#[test]
fn a_turn_that_is_canceled_stops_and_says_what_may_have_been_done() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--ack-wait", "1s", "--until-empty"]);
    sandbox.wait_for_effects(1);
    let turn = running_turn(&sandbox);
    let output = sandbox
        .run(&["queue", "cancel", QUEUE, &turn])
        .assert_exit(0);
    assert!(output.stderr.contains("is canceled"), "{}", output.stderr);
    // Without the cancellation, it would wait forever: the test never lets it continue.
    let answer = sandbox.collect().assert_exit(3);
    assert!(answer.texts()[0].contains("may have"), "{}", answer.stdout);
    worker.wait().assert_exit(0);
    assert_eq!(sandbox.effects(), ["a"]);
    let again = sandbox
        .run(&["queue", "cancel", QUEUE, &turn])
        .assert_exit(2);
    assert!(
        again.stderr.contains("is answered already"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_turn_that_is_canceled_before_it_begins_never_runs() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--ack-wait", "1s", "--until-empty"]);
    sandbox.wait_for_effects(1);
    let next = running_turn(&sandbox).replace(".0", ".1");
    sandbox
        .run(&["queue", "cancel", QUEUE, &next])
        .assert_exit(0);
    sandbox.go();
    let texts = sandbox.collect().assert_exit(0).texts();
    assert_eq!(texts[0], "did a");
    assert!(
        texts[1].contains("Not executed: the client canceled it"),
        "{texts:?}"
    );
    worker.wait().assert_exit(0);
    assert_eq!(sandbox.effects(), ["a"]);
}

#[test]
fn a_turn_that_is_not_there_cannot_be_canceled() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    let output = sandbox
        .run(&["queue", "cancel", QUEUE, "0123456789ab.0"])
        .assert_exit(2);
    assert!(output.stderr.contains("has no turn"), "{}", output.stderr);
}
