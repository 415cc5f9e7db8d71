//! What the engine makes of a turn, kept by position until it is compared.

use std::collections::HashMap;
use std::time::Duration;

use toolq_core::types::{Answer, CallRef, Event, NotExecuted, Outcome, Refused, Sink};
use toolq_engine::Delivery;

/// Today's answer to a call.
#[derive(Debug)]
pub(crate) struct Today {
    pub(super) answer: Answer,
    pub(super) duration: Duration,
    /// It is so because the run was ended, not because of the tool.
    pub(super) ended: bool,
    /// It may have had its effect, which nobody knows.
    pub(super) in_doubt: bool,
}

/// Hears the news of a turn and passes them on.
pub(crate) struct Ears<'e> {
    next: &'e mut dyn Sink,
    /// By position in the turn.
    pub(super) heard: HashMap<usize, Today>,
}

impl<'e> Ears<'e> {
    pub(super) fn new(next: &'e mut dyn Sink) -> Self {
        let heard = HashMap::new();
        Self { next, heard }
    }
}

impl Sink for Ears<'_> {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            if let Event::Finished {
                call,
                outcome,
                answer,
                duration,
                ..
            } = event
            {
                let today = Today {
                    answer: (*answer).clone(),
                    duration: *duration,
                    ended: is_ended(outcome),
                    in_doubt: outcome.is_in_doubt(),
                };
                self.heard.insert(call.position, today);
            }
        }
        self.next.tell(events)
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.next.settle()
    }
}

/// Whether the end of the run made a call end.
fn is_ended(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Interrupted { .. }
            | Outcome::NotExecuted(NotExecuted::Halted(_))
            | Outcome::LogRefused(_)
    )
}

/// Nobody waits for these answers in call order.
pub(crate) struct Nobody;

impl Delivery for Nobody {
    fn deliver(&mut self, call: &CallRef, _: Answer, sink: &mut dyn Sink) {
        // It was compared, or will be: for the log that is what printing is for a run.
        let _ = sink.tell(&[Event::ResultWritten { call }]);
    }

    fn drained(&mut self, _: &mut dyn Sink) {}
}
