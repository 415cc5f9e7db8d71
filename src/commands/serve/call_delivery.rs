//! The clients, seen from the engine: answers and progress go out.

use std::sync::Arc;

use crate::commands::serve::open_calls::OpenCalls;
use crate::session::RunSinks;
use redact::Mask;
use toolq_core::types::{CallAnswer, CallRef, EmitError, Event, EventSink};
use toolq_engine::AnswerDelivery;

/// Sends each answer as soon as its call has ended.
pub(crate) struct CallAnswerSender<'c>(pub(crate) &'c OpenCalls);

impl AnswerDelivery for CallAnswerSender<'_> {
    fn deliver(&mut self, call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink) {
        if self.0.answer(call.turn, &answer) {
            // A log error is reported at the end.
            let _ = sink.emit(&[Event::ResultWritten { call }]);
        }
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}

/// Passes all events on to the sinks of the session, and tells clients how far their calls are.
pub(crate) struct ProgressSink<'c> {
    pub(crate) sinks: &'c mut RunSinks,
    pub(crate) calls: &'c OpenCalls,
    pub(crate) mask: &'c Mask,
}

impl ProgressSink<'_> {
    fn report(&self, event: &Event<'_>) {
        match event {
            Event::Status {
                call,
                message,
                progress,
                ..
            } if message.is_some() || progress.is_some() => {
                let message = message.map(|message| self.mask.apply(message));
                let message = message.as_deref();
                self.calls.report_progress(call, *progress, message);
            }
            Event::AgentProgress {
                call,
                turn,
                max_turns,
                ..
            } => {
                let message = format!("turn {turn}, at most {max_turns} turns");
                self.calls.report_progress(call, None, Some(&message));
            }
            _ => {}
        }
    }
}

impl EventSink for ProgressSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let result = self.sinks.emit(events);
        for event in events {
            self.report(event);
        }
        result
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.sinks.shows_progress(call) || self.calls.wants_progress(call)
    }
}
