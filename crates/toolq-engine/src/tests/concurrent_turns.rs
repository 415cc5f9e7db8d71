//! Turns that run at the same time, each of one call.

use std::collections::BTreeMap;

use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::tests::scripted_runner::{
    EventRecorder, PendingAttempts, block_on, call, engine, play_script, rejected_call,
    success_outcome, tool,
};
use crate::turn::TurnRequest;
use toolq_core::types::{CheckedCall, Tool, TurnOrigin};

/// Gives each call a turn of its own.
fn requests(calls: Vec<CheckedCall>) -> Vec<TurnRequest> {
    let numbered = calls.into_iter().enumerate().map(|(turn, mut call)| {
        call.call.turn = turn;
        TurnRequest::Run {
            number: turn,
            calls: vec![call],
            origin: TurnOrigin::default(),
            outputs: None,
        }
    });
    numbered.collect()
}

/// Sends all requests at once, then runs `meanwhile`, which may send more.
fn run<F: Future>(
    tool: &Tool,
    first: Vec<TurnRequest>,
    meanwhile: impl FnOnce(mpsc::UnboundedSender<TurnRequest>, PendingAttempts, EventRecorder) -> F,
) -> EventRecorder {
    let (mut engine, attempts) = engine(&[tool], 8);
    let mut recorder = EventRecorder::default();
    let (mut delivery, watched) = (recorder.clone(), recorder.clone());
    let (sender, receiver) = mpsc::unbounded_channel();
    for request in first {
        sender.send(request).unwrap();
    }
    block_on(async {
        tokio::join!(
            engine.run_concurrent_turns(receiver, &mut recorder, &mut delivery),
            meanwhile(sender, attempts, watched)
        );
    });
    recorder
}

fn calls(ids: &str, tool: &Tool) -> Vec<CheckedCall> {
    ids.split_whitespace().map(|id| call(0, id, tool)).collect()
}

/// Clients of a server may call at the same time what must not run together.
#[test]
fn safe_calls_are_answered_as_they_end_and_an_unsafe_one_runs_alone() {
    let tool = tool("t");
    let first = requests(calls("a b C d e", &tool));
    let order = ["b", "a", "C", "e", "d"];
    let recorder = run(&tool, first, async |sender, mut attempts, recorder| {
        drop(sender);
        let mut running = BTreeMap::new();
        for (ended, id) in order.iter().enumerate() {
            while !running.contains_key(*id) {
                running.extend(attempts.recv().await);
            }
            let end: oneshot::Sender<_> = running.remove(*id).unwrap();
            end.send(success_outcome()).unwrap();
            while recorder.lines_for("delivered").len() <= ended {
                yield_now().await;
            }
        }
    });
    assert_eq!(recorder.lines_for("delivered"), order);
    let lines = recorder.lines();
    let place = |wanted: &str| lines.iter().position(|line| line.contains(wanted)).unwrap();
    assert!(place("finished a") < place("started C"), "{lines:?}");
    assert!(place("finished C") < place("started d"), "{lines:?}");
}

#[test]
fn a_rejected_call_waits_for_none() {
    let tool = tool("t");
    let mut calls = calls("A", &tool);
    calls.push(rejected_call(0, "x", &tool));
    let recorder = run(&tool, requests(calls), async |sender, mut attempts, _| {
        drop(sender);
        play_script(&mut attempts, "A").await;
    });
    assert_eq!(recorder.lines_for("delivered"), ["x", "A"]);
}

#[test]
fn a_canceled_turn_stops_alone_and_one_that_waits_never_starts() {
    let tool = tool("t");
    let first = requests(calls("a b C D", &tool));
    let recorder = run(&tool, first, async |sender, mut attempts, _| {
        let running = [
            attempts.recv().await.unwrap(),
            attempts.recv().await.unwrap(),
        ];
        for turn in [0, 2, 17] {
            sender.send(TurnRequest::Cancel(turn)).unwrap();
        }
        drop(sender);
        while attempts.is_empty() && !running[0].1.is_closed() {
            yield_now().await;
        }
        let [_, (id, end)] = running;
        assert_eq!(id, "b");
        end.send(success_outcome()).unwrap();
        play_script(&mut attempts, "D").await;
    });
    let mut ends = recorder.lines_for("finished");
    ends.sort();
    assert_eq!(
        ends,
        ["C not_executed 0", "D ok 1", "a interrupted 1", "b ok 1"]
    );
}
