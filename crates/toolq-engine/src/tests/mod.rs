//! Tests of turns by themselves: order, policies, retries, and the events it emits.

mod approvals;
mod concurrent_turns;
mod halts;
mod memory;
mod nested_agents;
mod restore;
mod scripted_runner;
mod start_limits;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::tests::scripted_runner::{
    EventRecorder, PendingAttempts, act_while_running, block_on, call, calls, engine, play_script,
    rejected_call, run_and_record, run_script, tool,
};
use crate::turn::{RunningTurn, TurnSink};
use toolq_core::types::{
    CheckedCall, CommandBacking, CommandLimits, DescribeCommand, Effect, Leftovers,
    NotExecutedCause, OnFailure, RetryCondition, StderrUse, StdinSource, Tool, TurnArrival,
    Verdict,
};

fn permutations(items: &[&'static str]) -> Vec<Vec<&'static str>> {
    let Some((first, rest)) = items.split_first() else {
        return vec![Vec::new()];
    };
    let longer = permutations(rest).into_iter().flat_map(|order| {
        (0..items.len()).map(move |at| {
            let mut order = order.clone();
            order.insert(at, *first);
            order
        })
    });
    longer.collect()
}

/// Models and hosts match results to calls by their order, too.
#[test]
fn answers_are_delivered_in_call_order_whatever_finishes_first() {
    let tool = tool("t");
    let ids = ["a", "b", "c", "d", "e", "f"];
    for n in 1..=ids.len() {
        for order in permutations(&ids[..n]) {
            let calls = calls(&ids[..n].join(" "), &tool);
            let recorder = run_and_record(&[&tool], 8, calls, &order.join(" "));
            assert_eq!(recorder.lines_for("delivered"), ids[..n], "{order:?}");
        }
    }
}

#[test]
fn a_turn_emits_its_events_in_order() {
    let (tool, other) = (tool("t"), tool("other"));
    let mut calls = calls("a b C d", &tool);
    calls.insert(1, rejected_call(9, "x", &other));
    let recorder = run_and_record(&[&tool], 8, calls, "b a C d");
    insta::assert_snapshot!(recorder.lines().join("\n"), @r"
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
    let recorder = run_and_record(&[&tool], 2, calls("a b c D", &tool), "!b D");
    let ends = ["b failed 1", "c not_executed 0", "a cancelled 1", "D ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
    assert_eq!(recorder.lines_for("delivered"), ["a", "b", "c", "D"]);
}

/// Until a tool has been described, any object is a valid input. That is good enough for a plan, but not for a run.
#[test]
fn a_tool_that_was_not_described_does_not_run() {
    let ordinary = tool("t");
    let command = CommandBacking {
        program: "describe".to_owned(),
        arguments: Vec::new(),
        dashes: Vec::new(),
        stdin: StdinSource::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::Kill,
        limits: CommandLimits::default(),
        sandbox: None,
        wrapper: None,
    };
    let undescribed = Tool {
        describe: Some(Box::new(DescribeCommand {
            command,
            result: Arc::default(),
        })),
        ..tool("undescribed")
    };
    let calls = vec![call(0, "a", &ordinary), call(1, "b", &undescribed)];
    let recorder = run_and_record(&[&ordinary, &undescribed], 2, calls, "a");
    assert_eq!(
        recorder.lines_for("finished"),
        ["b internal_error 0", "a ok 1"]
    );
}

#[test]
fn a_failure_affects_no_other_call() {
    let tool = tool("t");
    let recorder = run_and_record(&[&tool], 2, calls("a b c D", &tool), "!b !a c !D");
    assert_eq!(
        recorder.lines_for("finished"),
        ["b failed 1", "a failed 1", "c ok 1", "D failed 1"]
    );
}

#[test]
fn a_failure_stops_later_calls() {
    let tool = Tool {
        on_failure: OnFailure::Stop,
        ..tool("t")
    };
    let recorder = run_and_record(&[&tool], 2, calls("a b c D", &tool), "!a b");
    let ends = [
        "a failed 1",
        "c not_executed 0",
        "D not_executed 0",
        "b ok 1",
    ];
    assert_eq!(recorder.lines_for("finished"), ends);
}

/// A rejected call counts as failed, which is known before anything starts.
#[test]
fn a_rejected_call_stops_later_calls() {
    let tool = Tool {
        on_failure: OnFailure::Stop,
        ..tool("t")
    };
    let mut calls = calls("a b c", &tool);
    calls[1] = rejected_call(1, "b", &tool);
    let recorder = run_and_record(&[&tool], 8, calls, "a");
    assert_eq!(
        recorder.lines_for("queued"),
        ["a Some(0)", "b None", "c None"]
    );
    let ends = ["b invalid_input 0", "c not_executed 0", "a ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
}

/// Failures are counted in call order and across turns, not in the order in which calls end.
#[test]
fn failures_in_a_row_pause_a_tool() {
    let tool = Tool {
        pause_after_failures: Some(2),
        ..tool("t")
    };
    let (mut engine, mut first) = (engine(&[&tool], 3), EventRecorder::default());
    run_script(&mut engine, calls("a b c", &tool), "!c b !a", &mut first);
    let mut second = EventRecorder::default();
    run_script(&mut engine, calls("a b", &tool), "!b !a", &mut second);
    let mut third = EventRecorder::default();
    run_script(&mut engine, calls("A", &tool), "", &mut third);
    assert_eq!(second.lines_for("finished"), ["b failed 1", "a failed 1"]);
    assert_eq!(third.lines_for("finished"), ["A paused 0"]);
    assert_eq!(third.lines_for("delivered"), ["A"]);
}

#[test]
fn a_failed_attempt_is_retried_as_often_as_declared() {
    let mut tool = tool("t");
    tool.retry.max_retries = 2;
    tool.retry.conditions = vec![RetryCondition::Exit(1)];
    let once = run_and_record(&[&tool], 8, calls("a", &tool), "!a a");
    assert_eq!(once.lines_for("started"), ["a 2"]);
    assert_eq!(once.lines_for("finished"), ["a ok 2"]);
    let never = run_and_record(&[&tool], 8, calls("a", &tool), "!a !a !a");
    assert_eq!(never.lines_for("retrying"), ["a", "a"]);
    assert_eq!(never.lines_for("finished"), ["a failed 3"]);
    tool.effect = Effect::Write;
    let write = run_and_record(&[&tool], 8, calls("a", &tool), "!a");
    assert_eq!(write.lines_for("finished"), ["a failed 1"]);
}

/// A call has no side effects without a start record.
#[test]
fn a_call_that_the_log_refuses_does_not_run() {
    let tool = tool("t");
    let mut recorder = EventRecorder {
        refused_call: Some("b"),
        ..EventRecorder::default()
    };
    run_script(
        &mut engine(&[&tool], 8),
        calls("a b C", &tool),
        "C",
        &mut recorder,
    );
    let ends = ["a log_refused 0", "b log_refused 0", "C ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
}

/// The call gets an error, and the others run.
#[test]
fn a_panic_is_confined_to_its_call() {
    let (tool, panics) = (tool("t"), tool("panics"));
    let mut calls = calls("a b c", &tool);
    calls[1] = call(1, "b", &panics);
    let recorder = run_and_record(&[&tool, &panics], 8, calls, "a c");
    assert_eq!(recorder.lines_for("delivered"), ["a", "b", "c"]);
    assert!(
        recorder
            .lines_for("finished")
            .contains(&"b internal_error 1".to_owned())
    );
}

/// Runs a turn whose calls are still arriving. `arrive` gets the sender of its calls, and their attempts.
fn run_arriving(
    tool: &Tool,
    jobs: usize,
    arrive: impl AsyncFnOnce(mpsc::UnboundedSender<TurnArrival>, &mut PendingAttempts),
) -> (EventRecorder, EventRecorder) {
    let (engine, mut attempts) = engine(&[tool], jobs);
    let (mut recorder, mut delivery) = (EventRecorder::default(), EventRecorder::default());
    let (sender, arrivals) = mpsc::unbounded_channel();
    let sink = TurnSink::new(&mut recorder, &engine.state.backends);
    let turn = RunningTurn::new(&engine.state, 0, &sink, &mut delivery);
    block_on(async {
        tokio::join!(turn.run(arrivals), arrive(sender, &mut attempts));
    });
    drop(sink);
    (recorder, delivery)
}

fn send_calls(sender: &mpsc::UnboundedSender<TurnArrival>, calls: Vec<CheckedCall>) {
    for call in calls {
        sender.send(TurnArrival::Call(Box::new(call))).unwrap();
    }
}

#[test]
fn calls_start_while_others_still_arrive() {
    let tool = tool("t");
    let (recorder, delivery) = run_arriving(&tool, 8, async |sender, attempts| {
        let mut first = calls("a b", &tool);
        let later = first.split_off(1);
        send_calls(&sender, first);
        play_script(attempts, "a").await;
        send_calls(&sender, later);
        play_script(attempts, "b").await;
    });
    assert_eq!(delivery.lines_for("delivered"), ["a", "b"]);
    assert_eq!(recorder.lines().last().unwrap(), "drained");
}

/// In a stream, a call that started before it was revoked keeps its result.
#[test]
fn only_calls_that_have_not_started_are_revoked() {
    let tool = tool("t");
    let (recorder, delivery) = run_arriving(&tool, 1, async |sender, attempts| {
        let mut first = calls("a b c", &tool);
        let last = first.split_off(2);
        send_calls(&sender, first);
        act_while_running(attempts, "a", || {
            for position in [1, 0, 7] {
                let Verdict::Rejected(rejection) = rejected_call(0, "x", &tool).verdict else {
                    unreachable!()
                };
                sender
                    .send(TurnArrival::Revoked {
                        position,
                        rejection: *rejection,
                    })
                    .unwrap();
            }
            send_calls(&sender, last);
        })
        .await;
        play_script(attempts, "c").await;
    });
    let ends = ["b invalid_input 0", "a ok 1", "c ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
    assert_eq!(delivery.lines_for("delivered"), ["a", "b", "c"]);
}

/// Calls that run when the stream aborts finish; no others start.
#[test]
fn an_aborted_turn_answers_its_running_calls() {
    let tool = tool("t");
    let (recorder, delivery) = run_arriving(&tool, 1, async |sender, attempts| {
        let mut first = calls("a b c", &tool);
        let last = first.split_off(2);
        send_calls(&sender, first);
        act_while_running(attempts, "a", || {
            sender
                .send(TurnArrival::RestSkipped(NotExecutedCause::StreamAborted))
                .unwrap();
            send_calls(&sender, last);
        })
        .await;
    });
    let ends = ["b not_executed 0", "c not_executed 0", "a ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
    assert_eq!(delivery.lines_for("delivered"), ["a", "b", "c"]);
}
