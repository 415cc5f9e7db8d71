//! Admits calls through the gate, in their order, and answers those that may not run.

use std::ops::ControlFlow;
use std::sync::Arc;

use tracing::debug;

use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::CallJob;
use toolq_core::types::{AcceptedCall, Effect, HaltCause, NotExecutedCause, Outcome, Tool};

impl Dispatcher<'_> {
    /// Admits calls through the gate, in their order. Those that may not run after all are answered here.
    pub(crate) fn admit_calls(&mut self) -> Vec<usize> {
        let mut admitted = Vec::new();
        while let Some(number) = self.next_at_gate() {
            let Some(job) = self.queue.waiting_job(number) else {
                self.gate.enter();
                continue;
            };
            if self.admit_call(number, job, &mut admitted).is_break() {
                break;
            }
        }
        self.request_approval();
        admitted
    }

    /// Admits the call that is next at the gate, or answers it. Breaks if it has to wait there, and with it all that follow.
    fn admit_call(
        &mut self,
        number: usize,
        job: Arc<CallJob>,
        admitted: &mut Vec<usize>,
    ) -> ControlFlow<()> {
        let is_blocked = self.check_blocked(number, &job.accepted.tool).is_some();
        if !self.is_approved(number, &job) && !is_blocked {
            return self.hold_for_approval(number);
        }
        if !self.enter_turn_gate(&job) {
            return ControlFlow::Break(());
        }
        if !is_blocked && let Some(outcome) = self.find_cached(&job.accepted) {
            self.gate.enter();
            self.gate.leave(number);
            self.finish_call(number, outcome);
            return ControlFlow::Continue(());
        }
        let limits = self.limits_of(&job);
        if !limits.is_empty() {
            self.gate.enter();
            self.throttle_call(number, &limits, false);
            admitted.extend(self.start_throttled());
            self.request_approval();
            return ControlFlow::Continue(());
        }
        let limit = self.engine.limit_for(&job);
        let Some(permit) = self.permits.take(&limit) else {
            debug!(
                id = job.call.id,
                agent = job.is_agent(),
                "waits for a place: as many calls run as may"
            );
            return ControlFlow::Break(());
        };
        self.gate.enter();
        if !self.may_start_with_locks(number, &job) {
            return ControlFlow::Continue(());
        }
        if let Some(outcome) = self.blocked_outcome(number, &job.accepted.tool) {
            self.gate.leave(number);
            self.finish_call(number, outcome);
        } else {
            let run = self.new_running_call(job, permit);
            self.queue.set_running(number, run);
            admitted.push(number);
        }
        ControlFlow::Continue(())
    }

    /// Breaks while a call that isn't approved has to wait, unless it was denied or has no approver.
    fn hold_for_approval(&mut self, number: usize) -> ControlFlow<()> {
        if self.queue.waiting_job(number).is_none() {
            // It was denied.
            return ControlFlow::Continue(());
        }
        self.request_approval();
        if self.lacks_approver(number) {
            self.finish_unapproved(number);
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(())
    }

    /// Returns the call that may enter the gate, if there is one. Whether it needs an approval is known then.
    fn next_at_gate(&mut self) -> Option<usize> {
        self.request_approval();
        self.gate.peek()
    }

    /// Returns the result of an earlier call that answers this one.
    fn find_cached(&self, accepted: &AcceptedCall) -> Option<Outcome> {
        let root = &self.engine.settings.tools.root;
        self.engine.result_cache.find(accepted, root)
    }

    /// Returns the outcome of a call that may not run, as [`check_blocked`](Self::check_blocked) does, or because the budget
    /// of calls is used up. Charges any other call to that budget.
    pub(crate) fn blocked_outcome(&mut self, number: usize, tool: &Tool) -> Option<Outcome> {
        if let Some(outcome) = self.check_blocked(number, tool) {
            return Some(outcome);
        }
        let exhausted = self.engine.run_budget.charge_call().err()?;
        let halted = NotExecutedCause::Halted(HaltCause::OverBudget(exhausted));
        Some(Outcome::NotExecuted(halted))
    }

    /// Returns the outcome of a call that may not run: its tool hasn't been described, an earlier call has no approval, a
    /// sibling failed in an earlier run, or its tool is paused.
    pub(crate) fn check_blocked(&self, number: usize, tool: &Tool) -> Option<Outcome> {
        if tool.needs_describe() {
            let message = if tool.awaits_list {
                "its input wasn't checked, since its server wasn't asked for its tools"
            } else {
                "its input wasn't checked, since the tool's `describe` command didn't run"
            };
            return Some(Outcome::InternalError(message.to_owned()));
        }
        if let Some((first, unapproved)) = &self.never_approved
            && number > *first
            && tool.effect != Effect::Read
        {
            let tool = unapproved.clone();
            let cause = NotExecutedCause::PrecedingNeedsApproval { tool };
            return Some(Outcome::NotExecuted(cause));
        }
        let batch = self.queue.get(number).and_then(|entry| entry.call.batch);
        if let Some(tool) = batch.and_then(|batch| self.canceled_batches.get(&batch)) {
            let tool = tool.clone();
            return Some(Outcome::NotExecuted(NotExecutedCause::SiblingFailed {
                tool,
            }));
        }
        if let Some(failures) = self.engine.circuit_breakers.paused_after(tool) {
            return Some(Outcome::Paused { failures });
        }
        None
    }
}
