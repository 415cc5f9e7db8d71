//! Calls that an earlier run ended: they are answered as they arrive, pass no gate, take no slot and are no barrier. What
//! their failures did to others, they do again.

use crate::dispatcher::turn::Turn;
use toolq_core::types::{Call, CallRef, Captured, Doubt, OnFailure, Outcome};

/// A call that was started, and of which nobody knows more.
pub(crate) fn orphaned() -> Outcome {
    Outcome::InDoubt {
        doubt: Doubt::Orphaned,
        output: String::new(),
        captured: Captured::default(),
    }
}

impl Turn<'_> {
    /// Answers a call by what an earlier run made of it, of which there were so many attempts.
    pub(crate) fn recall(
        &mut self,
        reference: &CallRef,
        call: &Call,
        outcome: &Outcome,
        attempts: u32,
    ) {
        let tool = self.engine.settings.tools.get(&call.name);
        let failed = outcome.is_error() && !outcome.is_given_up();
        let cancels = |on_failure| on_failure == OnFailure::CancelSiblings;
        if let (Some(batch), Some(tool)) = (reference.batch, tool)
            && failed
            && cancels(tool.on_failure)
        {
            // Its siblings are not all there yet.
            self.cancelled.insert(batch, tool.name.clone());
        }
        self.arrive_over(reference, call, outcome, attempts);
    }
}
