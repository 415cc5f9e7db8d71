//! Collects the results of a turn by position until they are compared.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use toolq_core::types::{
    CallAnswer, CallRef, EmitError, Event, EventSink, NotExecutedCause, Outcome,
};
use toolq_engine::AnswerDelivery;

/// The current result of a call.
#[derive(Debug, Clone)]
pub(crate) struct ActualResult {
    pub(super) answer: CallAnswer,
    pub(super) duration: Duration,
    /// The call ended because the run was stopped, not because of the tool.
    pub(super) halted: bool,
    /// Whether the call had its effect is unknown.
    pub(super) in_doubt: bool,
}

/// Collects the results of a turn, and passes all events on.
pub(crate) struct ResultCollector<'e> {
    next: &'e mut dyn EventSink,
    /// The results by position in the turn.
    pub(super) results: HashMap<usize, ActualResult>,
}

impl<'e> ResultCollector<'e> {
    pub(super) fn new(next: &'e mut dyn EventSink) -> Self {
        let results = HashMap::new();
        Self { next, results }
    }
}

impl EventSink for ResultCollector<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            if let Event::Finished {
                call,
                outcome,
                answer,
                duration,
                ..
            } = event
            {
                let actual = ActualResult {
                    answer: (*answer).clone(),
                    duration: *duration,
                    halted: is_halted(outcome),
                    in_doubt: outcome.is_in_doubt(),
                };
                self.results.insert(call.position, actual);
            }
        }
        self.next.emit(events)
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.next.shows_progress(call)
    }
}

/// Returns whether a call ended because the run was stopped.
fn is_halted(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Interrupted { .. }
            | Outcome::NotExecuted(NotExecutedCause::Halted(_))
            | Outcome::LogRefused(_)
    )
}

/// Delivers the answers of a replay to nobody, since the results are collected from events.
pub(crate) struct ReplayDelivery;

impl AnswerDelivery for ReplayDelivery {
    fn deliver(&mut self, call: &Arc<CallRef>, _: CallAnswer, sink: &mut dyn EventSink) {
        // For the log, being compared counts as being printed.
        let _ = sink.emit(&[Event::ResultWritten { call }]);
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}
