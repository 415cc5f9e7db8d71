//! The dispatcher by itself: order, policies, repetition, and what it tells.

mod halts;
mod remote;
mod restore;

use std::sync::Arc;

use tokio::runtime;
use tokio::sync::mpsc;

use crate::tests::remote::{
    Attempts, Witness, act, act_when_started, call, calls, engine, rejected, run, tool, witness,
};
use toolq_core::types::{
    Arrival, Checked, CommandBacking, Describe, Effect, Leftovers, Limits, NotExecuted, OnFailure,
    RetryOn, Stdin, Tool, Verdict,
};

fn permutations(items: &[&'static str]) -> Vec<Vec<&'static str>> {
    let Some((first, rest)) = items.split_first() else {
        return vec![Vec::new()];
    };
    let places = permutations(rest).into_iter().flat_map(|order| {
        (0..items.len()).map(move |at| {
            let mut order = order.clone();
            order.insert(at, *first);
            order
        })
    });
    places.collect()
}

/// FAULTS 76: answers are delivered in call order, in whatever order calls end.
#[test]
fn every_order_of_ends_is_delivered_in_call_order() {
    let tool = tool("t");
    let ids = ["a", "b", "c", "d", "e", "f"];
    for n in 1..=ids.len() {
        for order in permutations(&ids[..n]) {
            let calls = calls(&ids[..n].join(" "), &tool);
            let witness = witness(&[&tool], 8, calls, &order.join(" "));
            assert_eq!(witness.of("delivered"), ids[..n], "{order:?}");
        }
    }
}

#[test]
fn a_turn_in_events() {
    let (tool, other) = (tool("t"), tool("other"));
    let mut calls = calls("a b C d", &tool);
    calls.insert(1, rejected(9, "x", &other));
    let witness = witness(&[&tool], 8, calls, "b a C d");
    insta::assert_snapshot!(witness.lines().join("\n"), @r"
    turn 0
    queued a Some(0)
    queued x None
    finished x invalid_input 0
    queued b Some(0)
    queued C Some(1)
    queued d Some(2)
    batch 0 [a b] + started a 1 + started b 1
    finished b ok 1
    finished a ok 1
    delivered a
    delivered x
    delivered b
    batch 1 [C] + started C 1
    finished C ok 1
    delivered C
    batch 2 [d] + started d 1
    finished d ok 1
    delivered d
    drained
    ");
}

#[test]
fn a_failure_cancels_running_and_waiting_siblings_only() {
    let tool = Tool {
        on_failure: OnFailure::CancelSiblings,
        ..tool("t")
    };
    let witness = witness(&[&tool], 2, calls("a b c D", &tool), "!b D");
    let ends = ["b failed 1", "c not_executed 0", "a cancelled 1", "D ok 1"];
    assert_eq!(witness.of("finished"), ends);
    assert_eq!(witness.of("delivered"), ["a", "b", "c", "D"]);
}

/// Any object is an input as long as a tool was not asked what it takes; that is for plans, and nothing to run by.
#[test]
fn what_was_not_asked_does_not_run() {
    let asked = tool("t");
    let command = CommandBacking {
        program: "describe".to_owned(),
        arguments: Vec::new(),
        stdin: Stdin::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        leftovers: Leftovers::Kill,
        limits: Limits::default(),
    };
    let said = Arc::default();
    let unasked = Tool {
        describe: Some(Box::new(Describe { command, said })),
        ..tool("unasked")
    };
    let calls = vec![call(0, "a", &asked), call(1, "b", &unasked)];
    let witness = witness(&[&asked, &unasked], 2, calls, "a");
    assert_eq!(witness.of("finished"), ["b internal_error 0", "a ok 1"]);
}

#[test]
fn one_failure_touches_nothing_else() {
    let tool = tool("t");
    let witness = witness(&[&tool], 2, calls("a b c D", &tool), "!b !a c !D");
    assert_eq!(
        witness.of("finished"),
        ["b failed 1", "a failed 1", "c ok 1", "D failed 1"]
    );
}

#[test]
fn a_failure_stops_what_comes_later() {
    let tool = Tool {
        on_failure: OnFailure::Stop,
        ..tool("t")
    };
    let witness = witness(&[&tool], 2, calls("a b c D", &tool), "!a b");
    let ends = [
        "a failed 1",
        "c not_executed 0",
        "D not_executed 0",
        "b ok 1",
    ];
    assert_eq!(witness.of("finished"), ends);
}

/// A rejected call counts as failed, and that is known before anything starts.
#[test]
fn a_rejected_call_stops_what_comes_later() {
    let tool = Tool {
        on_failure: OnFailure::Stop,
        ..tool("t")
    };
    let mut calls = calls("a b c", &tool);
    calls[1] = rejected(1, "b", &tool);
    let witness = witness(&[&tool], 8, calls, "a");
    assert_eq!(witness.of("queued"), ["a Some(0)", "b None", "c None"]);
    let ends = ["b invalid_input 0", "c not_executed 0", "a ok 1"];
    assert_eq!(witness.of("finished"), ends);
}

/// In call order over turns: what ended first doesn't count first.
#[test]
fn failures_in_a_row_pause_a_tool() {
    let tool = Tool {
        pause_after_failures: Some(2),
        ..tool("t")
    };
    let (mut engine, mut first) = (engine(&[&tool], 3), Witness::default());
    run(&mut engine, calls("a b c", &tool), "!c b !a", &mut first);
    let mut second = Witness::default();
    run(&mut engine, calls("a b", &tool), "!b !a", &mut second);
    let mut third = Witness::default();
    run(&mut engine, calls("A", &tool), "", &mut third);
    assert_eq!(second.of("finished"), ["b failed 1", "a failed 1"]);
    assert_eq!(third.of("finished"), ["A paused 0"]);
    assert_eq!(third.of("delivered"), ["A"]);
}

#[test]
fn a_failed_attempt_is_repeated_as_often_as_declared() {
    let mut tool = tool("t");
    tool.retry.times = 2;
    tool.retry.on = vec![RetryOn::Exit(1)];
    let once = witness(&[&tool], 8, calls("a", &tool), "!a a");
    assert_eq!(once.of("started"), ["a 2"]);
    assert_eq!(once.of("finished"), ["a ok 2"]);
    let never = witness(&[&tool], 8, calls("a", &tool), "!a !a !a");
    assert_eq!(never.of("retrying"), ["a", "a"]);
    assert_eq!(never.of("finished"), ["a failed 3"]);
    tool.effect = Effect::Write;
    let write = witness(&[&tool], 8, calls("a", &tool), "!a");
    assert_eq!(write.of("finished"), ["a failed 1"]);
}

/// FAULTS 125: a result that can't be repeated is settled before anything is waited for, and behind what starts at once, so
/// that one sync does for both.
#[test]
fn what_writes_is_settled_behind_the_next_start() {
    let tool = Tool {
        effect: Effect::Write,
        ..tool("t")
    };
    let witness = witness(&[&tool], 8, calls("A B c d", &tool), "A !B d c");
    let from = witness
        .lines()
        .iter()
        .position(|line| line == "queued d Some(2)");
    insta::assert_snapshot!(witness.lines()[from.unwrap() + 1..].join("\n"), @r"
    batch 0 [A] + started A 1
    finished A ok 1
    delivered A
    batch 1 [B] + started B 1
    settled
    finished B failed 1
    delivered B
    batch 2 [c d] + started c 1 + started d 1
    settled
    finished d ok 1
    settled
    finished c ok 1
    delivered c
    delivered d
    settled
    drained
    ");
}

/// No side effect without a start record.
#[test]
fn what_the_log_refuses_does_not_run() {
    let tool = tool("t");
    let mut witness = Witness {
        refuses: Some("b"),
        ..Witness::default()
    };
    run(
        &mut engine(&[&tool], 8),
        calls("a b C", &tool),
        "C",
        &mut witness,
    );
    let ends = ["a log_refused 0", "b log_refused 0", "C ok 1"];
    assert_eq!(witness.of("finished"), ends);
}

#[test]
fn a_panic_is_confined_to_its_call() {
    let (tool, panics) = (tool("t"), tool("panics"));
    let mut calls = calls("a b c", &tool);
    calls[1] = call(1, "b", &panics);
    let witness = witness(&[&tool, &panics], 8, calls, "a c");
    assert_eq!(witness.of("delivered"), ["a", "b", "c"]);
    assert!(
        witness
            .of("finished")
            .contains(&"b internal_error 1".to_owned())
    );
}

/// A turn that arrives while it runs: `arrive` is handed what feeds it, and the attempts.
fn arriving(
    tool: &Tool,
    jobs: usize,
    arrive: impl AsyncFnOnce(mpsc::UnboundedSender<Arrival>, &mut Attempts),
) -> (Witness, Witness) {
    let (mut engine, mut attempts) = engine(&[tool], jobs);
    let (mut witness, mut delivery) = (Witness::default(), Witness::default());
    let (feed, arriving) = mpsc::unbounded_channel();
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::join!(
            engine.fed_turn(0, arriving, &mut witness, &mut delivery),
            arrive(feed, &mut attempts)
        );
    });
    (witness, delivery)
}

fn send(feed: &mpsc::UnboundedSender<Arrival>, calls: Vec<Checked>) {
    for call in calls {
        feed.send(Arrival::Call(Box::new(call))).unwrap();
    }
}

#[test]
fn calls_start_while_others_still_arrive() {
    let tool = tool("t");
    let (witness, delivery) = arriving(&tool, 8, async |feed, attempts| {
        let mut later = calls("a b", &tool);
        let first = vec![later.remove(0)];
        send(&feed, first);
        act(attempts, "a").await;
        send(&feed, later);
        act(attempts, "b").await;
    });
    assert_eq!(delivery.of("delivered"), ["a", "b"]);
    assert_eq!(witness.lines().last().unwrap(), "drained");
}

/// In a stream, what had started before the cut or the second id was seen keeps its result.
#[test]
fn only_what_has_not_started_is_revoked() {
    let tool = tool("t");
    let (witness, delivery) = arriving(&tool, 1, async |feed, attempts| {
        let mut later = calls("a b c", &tool);
        let last = vec![later.pop().unwrap()];
        send(&feed, later);
        act_when_started(attempts, "a", || {
            for position in [1, 0, 7] {
                let Verdict::Rejected(rejection) = rejected(0, "x", &tool).verdict else {
                    unreachable!()
                };
                feed.send(Arrival::Revoked {
                    position,
                    rejection,
                })
                .unwrap();
            }
            send(&feed, last);
        })
        .await;
        act(attempts, "c").await;
    });
    let ends = ["b invalid_input 0", "a ok 1", "c ok 1"];
    assert_eq!(witness.of("finished"), ends);
    assert_eq!(delivery.of("delivered"), ["a", "b", "c"]);
}

/// What ran when the stream broke off is answered; nothing else starts.
#[test]
fn a_broken_turn_answers_what_ran() {
    let tool = tool("t");
    let (witness, delivery) = arriving(&tool, 1, async |feed, attempts| {
        let mut later = calls("a b c", &tool);
        let last = vec![later.pop().unwrap()];
        send(&feed, later);
        act_when_started(attempts, "a", || {
            feed.send(Arrival::Over(NotExecuted::BrokeOff)).unwrap();
            send(&feed, last);
        })
        .await;
    });
    let ends = ["b not_executed 0", "c not_executed 0", "a ok 1"];
    assert_eq!(witness.of("finished"), ends);
    assert_eq!(delivery.of("delivered"), ["a", "b", "c"]);
}
