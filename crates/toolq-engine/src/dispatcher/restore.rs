//! Restores calls that ended in an earlier run. They are answered as they arrive, without passing the gate or taking a
//! permit, and other calls don't wait for them. Their failures affect other calls as they did then.

use std::sync::Arc;

use crate::dispatcher::turn_loop::Dispatcher;
use toolq_core::types::{CallOutput, CallRef, CallRequest, DoubtCause, OnFailure, Outcome};

/// Returns the outcome of a call that was started by an earlier run and about which nothing more is known.
pub(crate) fn orphaned_outcome() -> Outcome {
    Outcome::InDoubt {
        cause: DoubtCause::EndNotLogged(None),
        output: CallOutput::default(),
    }
}

impl Dispatcher<'_> {
    /// Answers a call whose outcome the memory knows.
    pub(crate) fn answer_known(
        &mut self,
        call_ref: &Arc<CallRef>,
        request: CallRequest<'_>,
        outcome: &Outcome,
    ) {
        let tool = self.engine.settings.tools.get(&request.call.name);
        let failed = outcome.is_error() && !outcome.is_stopped_externally();
        let cancels = |on_failure| on_failure == OnFailure::CancelSiblings;
        if let (Some(batch), Some(tool)) = (call_ref.batch, tool)
            && failed
            && cancels(tool.on_failure)
        {
            // Some of its siblings haven't arrived yet.
            self.canceled_batches.insert(batch, tool.name.clone());
        }
        self.answer_on_arrival(call_ref, request, outcome);
    }
}
