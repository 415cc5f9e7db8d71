//! What the end of a call does to other calls, as a list of work. Handling an effect may add more, so calls end one
//! after another, and the consequences of one in the order in which they arose.

use crate::dispatcher::turn_loop::Dispatcher;
use toolq_core::types::{NotExecutedCause, OnDoubt, OnFailure, Outcome, Tool};

/// Something that remains to be done because a call has ended.
#[derive(Debug)]
pub(crate) enum CallEffect {
    /// End the call with this number, which waits or runs.
    Finish(usize, Outcome),
    /// Skip all calls after the one with this number.
    SkipLater(usize, NotExecutedCause),
    /// Cancel the other calls of the batch of the call with this number, whose tool is named.
    CancelSiblings(usize, String),
}

impl Dispatcher<'_> {
    /// Ends a waiting or running call, with everything that follows from that.
    pub(crate) fn finish_call(&mut self, number: usize, outcome: Outcome) {
        self.effects.push_back(CallEffect::Finish(number, outcome));
        self.apply_effects();
    }

    /// Ends waiting calls that don't run, with everything that follows from that.
    pub(crate) fn skip_calls(
        &mut self,
        numbers: impl IntoIterator<Item = usize>,
        outcome: &Outcome,
    ) {
        self.push_skips(numbers, outcome);
        self.apply_effects();
    }

    /// Handles effects until the queue is empty, and delivers the answers that are then next in call order.
    pub(crate) fn apply_effects(&mut self) {
        while let Some(effect) = self.effects.pop_front() {
            match effect {
                CallEffect::Finish(number, outcome) => self.end_call(number, &outcome),
                CallEffect::SkipLater(last, cause) => self.skip_later(last, cause),
                CallEffect::CancelSiblings(number, tool) => self.cancel_siblings(number, &tool),
            }
        }
        self.deliver_answers();
    }

    /// Adds what the tool's `on_doubt` and `on_failure` do to the other calls of the turn. A call that was skipped or stopped from
    /// outside cancels no siblings, but stops later calls just like one that failed: they build on its result.
    pub(crate) fn push_on_failure(&mut self, number: usize, tool: &Tool, outcome: &Outcome) {
        if !outcome.is_error() {
            return;
        }
        let tool_name = tool.name.clone();
        if outcome.is_in_doubt() && tool.on_doubt == OnDoubt::Stop {
            let tool = tool.name.clone();
            let cause = NotExecutedCause::PrecedingInDoubt { tool };
            self.effects.push_back(CallEffect::SkipLater(number, cause));
        }
        match tool.on_failure {
            OnFailure::CancelSiblings if outcome.cancels_siblings() => {
                self.effects
                    .push_back(CallEffect::CancelSiblings(number, tool_name));
            }
            OnFailure::Continue | OnFailure::CancelSiblings => {}
            OnFailure::Stop => {
                let cause = NotExecutedCause::PrecedingFailed { tool: tool_name };
                self.effects.push_back(CallEffect::SkipLater(number, cause));
            }
        }
    }

    fn push_skips(&mut self, numbers: impl IntoIterator<Item = usize>, outcome: &Outcome) {
        let skip = |number| CallEffect::Finish(number, outcome.clone());
        self.effects.extend(numbers.into_iter().map(skip));
    }

    /// Skips all later calls, unless an earlier call already did.
    fn skip_later(&mut self, last: usize, cause: NotExecutedCause) {
        if self.stopped_by.is_some() {
            return;
        }
        let outcome = Outcome::NotExecuted(cause.clone());
        self.stopped_by = Some(cause);
        let later = self.withdraw_waiting(|number| number > last);
        self.push_skips(later, &outcome);
    }

    /// Cancels the other calls of the batch, both running and waiting.
    fn cancel_siblings(&mut self, number: usize, tool: &str) {
        let entry = self.queue.get(number);
        let Some(failed_batch) = entry.and_then(|entry| entry.call.batch) else {
            return;
        };
        for (batch, run) in self.queue.running_calls() {
            if batch == Some(failed_batch) {
                run.canceled_by.get_or_insert_with(|| tool.to_owned());
                run.cancel_attempt();
            }
        }
        let sibling = Outcome::NotExecuted(NotExecutedCause::SiblingFailed {
            tool: tool.to_owned(),
        });
        for (number, outcome) in self.withdraw_canceled_retries() {
            self.effects.push_back(CallEffect::Finish(number, outcome));
        }
        for (number, outcome) in self.withdraw_uncleared() {
            self.effects.push_back(CallEffect::Finish(number, outcome));
        }
        let in_batch = self.queue.batch_range(number);
        let waiting = self.withdraw_waiting(|number| in_batch.contains(&number));
        self.push_skips(waiting, &sibling);
    }

    /// Takes waiting calls away from the gate, also those that are throttled. Returns their numbers, in call order.
    pub(crate) fn withdraw_waiting(&mut self, matches: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut numbers = self.withdraw_throttled(&matches);
        numbers.extend(self.gate.withdraw(&matches));
        numbers.sort_unstable();
        numbers
    }
}
