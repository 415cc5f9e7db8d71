//! Feeds the calls of a message to its turn while the message is still arriving, be it an input or the response of an
//! agent's model.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use toolq_core::check::StreamAdmission;
use toolq_core::transcript::{InputError, PartialCall, StreamEvent};
use toolq_core::types::{Call, CallRef, CheckedCall, NotExecutedCause, TurnArrival};

/// Carries the events of one message to the dispatcher of its turn. Dropping it ends the turn.
pub(crate) struct CallFeeder<'c> {
    /// Counted over all inputs of the run, or within the agent.
    pub(crate) turn_number: usize,
    /// The call of the agent that the message belongs to.
    pub(crate) parent: Option<Arc<CallRef>>,
    /// Decides which calls may start.
    pub(crate) admission: StreamAdmission<'c>,
    pub(crate) sender: UnboundedSender<TurnArrival>,
}

/// Whether the message continues.
pub(crate) enum MessageProgress {
    Open,
    Complete,
    Aborted(InputError),
}

impl CallFeeder<'_> {
    /// Takes in the next event. Its calls are passed on by [`send_ready`](Self::send_ready).
    pub(crate) fn feed(&mut self, event: StreamEvent) -> MessageProgress {
        match event {
            StreamEvent::PartialInput(part) => self.send(self.partial_arrival(part)),
            StreamEvent::CallStarted { .. } => self.admission.begin(),
            StreamEvent::CallComplete(call) => self.admission.complete(self.own_call(call)),
            StreamEvent::MessageEnd { ending, .. } => {
                self.admission.close(ending);
                return MessageProgress::Complete;
            }
            StreamEvent::Aborted {
                unfinished_calls,
                error,
            } => {
                self.abort(unfinished_calls);
                return MessageProgress::Aborted(error);
            }
        }
        MessageProgress::Open
    }

    /// Ends a message that broke off. `unfinished` are its last calls, whose inputs are incomplete.
    pub(crate) fn abort(&mut self, unfinished: Vec<Call>) {
        let unfinished = unfinished.into_iter().map(|call| self.own_call(call));
        self.admission.abort(unfinished.collect());
    }

    /// Sends the calls that may start by now, and everything else that is known of them. `review` sees each call before;
    /// if it returns a cause, that call and all after it get a result, but don't run.
    pub(crate) fn send_ready(
        &mut self,
        mut review: impl FnMut(&mut CheckedCall) -> Option<NotExecutedCause>,
    ) {
        for mut arrival in self.admission.drain_ready() {
            let cause = match &mut arrival {
                TurnArrival::Call(checked) => review(checked),
                _ => None,
            };
            let skip = cause.map(TurnArrival::RestSkipped);
            for arrival in skip.into_iter().chain([arrival]) {
                // The dispatcher receives until this sender is dropped, so sending can't fail.
                let _ = self.sender.send(arrival);
            }
        }
    }

    /// Prevents the calls that follow from starting.
    pub(crate) fn skip_rest(&self, cause: NotExecutedCause) {
        self.send(TurnArrival::RestSkipped(cause));
    }

    /// Returns a call as a call of this turn.
    pub(crate) fn own_call(&self, call: Call) -> Call {
        Call {
            turn: self.turn_number,
            parent: self.parent.clone(),
            ..call
        }
    }

    fn partial_arrival(&self, part: PartialCall) -> TurnArrival {
        let call = CallRef {
            turn: self.turn_number,
            position: part.position,
            tool_use_id: part.id,
            tool_name: part.name.into(),
            batch: None,
            parent: self.parent.clone(),
        };
        TurnArrival::PartialInput {
            call,
            input_so_far: part.input_so_far,
        }
    }

    fn send(&self, arrival: TurnArrival) {
        let _ = self.sender.send(arrival);
    }
}
