//! When the servers of the last turn begin to end.

use std::sync::{Arc, Mutex};

use crate::attempt::{Attempt, AttemptFuture, AttemptRunner};
use crate::control::Suspendable;
use crate::engine::Engine;
use crate::settings::AnswerDelivery;
use crate::tests::scripted_runner::{
    EventRecorder, block_on, calls, engine_settings, success_outcome, tool,
};
use toolq_core::types::{CallAnswer, CallRef, EventSink};

/// Remembers what happens, in order.
#[derive(Clone, Default)]
struct StepRecorder(Arc<Mutex<Vec<&'static str>>>);

impl StepRecorder {
    fn note(&self, step: &'static str) {
        self.0.lock().unwrap().push(step);
    }
}

impl Suspendable for StepRecorder {}

impl AttemptRunner for StepRecorder {
    fn run(&self, _: Box<Attempt>) -> AttemptFuture<'_> {
        self.note("call");
        Box::pin(async { success_outcome().into() })
    }

    fn begin_ending_servers(&self) {
        self.note("servers end");
    }
}

impl AnswerDelivery for StepRecorder {
    fn deliver(&mut self, _: &Arc<CallRef>, _: CallAnswer, _: &mut dyn EventSink) {}

    fn finish_turn(&mut self, _: &mut dyn EventSink) {
        self.note("answers are printed");
    }
}

/// Returns what happens in two turns with a call each. `expect_last` announces the second as the last one.
fn steps(expect_last: bool) -> Vec<&'static str> {
    let tool = tool("a");
    let mut recorder = StepRecorder::default();
    let runner = Arc::new(recorder.clone());
    let mut engine = Engine::with_runner(engine_settings(&[&tool], 1), runner);
    block_on(async {
        let mut sink = EventRecorder::default();
        let turn = calls("a", &tool);
        engine.run_turn(0, turn, &mut sink, &mut recorder).await;
        if expect_last {
            engine.expect_last_turn();
        }
        let turn = calls("a", &tool);
        engine.run_turn(1, turn, &mut sink, &mut recorder).await;
    });
    recorder.0.lock().unwrap().clone()
}

#[test]
fn servers_of_the_last_turn_end_while_its_answers_are_printed() {
    let printed = "answers are printed";
    let expected = ["call", printed, "call", "servers end", printed];
    assert_eq!(steps(true), expected);
}

#[test]
fn servers_are_kept_as_long_as_another_turn_may_follow() {
    assert!(!steps(false).contains(&"servers end"));
}
