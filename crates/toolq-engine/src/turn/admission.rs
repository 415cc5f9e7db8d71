//! Admits calls, in their order: through the gate, then to their limits or permits. Those that may not run are answered.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use crate::digests::idempotency_key;
use crate::scheduler::Permit;
use crate::turn::RunningTurn;
use crate::turn::call::RunningCall;
use toolq_core::check::recheck_locks;
use toolq_core::types::{Effect, HaltCause, NotExecutedCause, Outcome, Tool};

impl RunningTurn<'_> {
    /// Admits the calls that may run now, in their order.
    pub(super) fn admit_calls(&mut self) {
        self.start_throttled();
        loop {
            self.request_approval();
            let Some(number) = self.gate.peek() else {
                break;
            };
            if self.admit_call(number).is_break() {
                break;
            }
        }
        self.request_approval();
    }

    /// Admits the call that is next at the gate, or answers it. Breaks if it has to wait there, and with it all that follow.
    fn admit_call(&mut self, number: usize) -> ControlFlow<()> {
        let Some(job) = self.queue.waiting_job(number) else {
            self.gate.enter();
            return Continue(());
        };
        let is_blocked = self.check_blocked(number, &job.accepted.tool).is_some();
        if !self.is_approved(number, &job) && !is_blocked {
            return self.hold_for_approval(number);
        }
        if !self.enter_turn_gate(&job) {
            return Break(());
        }
        let root = &self.engine.settings.tools.root;
        if !is_blocked && let Some(outcome) = self.engine.result_cache.find(&job.accepted, root) {
            self.gate.enter();
            self.gate.leave(number);
            self.finish_call(number, outcome);
            return Continue(());
        }
        let limits = self.engine.limits_of(&job);
        if !limits.is_empty() {
            self.gate.enter();
            self.throttle_call(number, &limits, false);
            self.start_throttled();
            return Continue(());
        }
        let Some(permit) = self.permits.take(&self.engine.limit_for(&job)) else {
            return Break(());
        };
        self.gate.enter();
        if let Some(run) = self.admit_to_run(number, permit) {
            self.begin_call(run);
        }
        Continue(())
    }

    /// Breaks while a call that isn't approved has to wait, unless it was denied or has no approver. To find out what an earlier
    /// start of it did takes no approval.
    fn hold_for_approval(&mut self, number: usize) -> ControlFlow<()> {
        // If it no longer waits, it was denied.
        let Some(job) = self.queue.waiting_job(number) else {
            return Continue(());
        };
        if self.request_approval() != Some(number) {
            return Break(());
        }
        if job.unsettled.is_some() {
            self.approvals.unapproved.remove(&number);
        } else {
            self.finish_unapproved(number);
        }
        Continue(())
    }

    /// Admits a call that is through the gate and has its permit, unless it may not run after all, or has to wait again because the
    /// paths in its locks lead elsewhere now.
    pub(super) fn admit_to_run(&mut self, number: usize, permit: Permit) -> Option<RunningCall> {
        let job = self.queue.waiting_job(number)?;
        let settings = &self.engine.settings;
        if let Some(locks) = recheck_locks(&job.accepted, &settings.tools.root)
            && settings.jobs.get() > 1
            && !self.gate.change_locks(number, locks)
        {
            return None;
        }
        if let Some(outcome) = self.blocked_outcome(number, &job.accepted.tool) {
            self.gate.leave(number);
            self.finish_blocked(number, &job, outcome);
            return None;
        }
        let call = Arc::clone(&self.queue.get(number)?.call);
        let key = idempotency_key(&settings.task_id, &job.call, &job.accepted.input);
        let now = self.engine.control.now();
        let mut run = RunningCall::new((number, call), job, key, now, permit);
        run.is_approved = self.approvals.approved.contains(&number);
        Some(run)
    }

    /// Returns the outcome of a call that may not run, as [`check_blocked`](Self::check_blocked) does, or because the budget
    /// of calls is used up. Charges any other call to that budget.
    fn blocked_outcome(&mut self, number: usize, tool: &Tool) -> Option<Outcome> {
        if let Some(outcome) = self.check_blocked(number, tool) {
            return Some(outcome);
        }
        let exhausted = self.engine.run_budget.charge_call().err()?;
        let halted = NotExecutedCause::Halted(HaltCause::OverBudget(exhausted));
        Some(Outcome::NotExecuted(halted))
    }

    /// Returns the outcome of a call that may not run: its tool hasn't been described, an earlier call has no approval, a
    /// sibling failed in an earlier run, or its tool is paused.
    pub(super) fn check_blocked(&self, number: usize, tool: &Tool) -> Option<Outcome> {
        if tool.needs_describe() {
            let message = if tool.awaits_list {
                "its input wasn't checked, since its server wasn't asked for its tools"
            } else {
                "its input wasn't checked, since the tool's `describe` command didn't run"
            };
            return Some(Outcome::InternalError(message.to_owned()));
        }
        if let Some((first, unapproved)) = &self.approvals.never_approved
            && number > *first
            && tool.effect != Effect::Read
        {
            let tool = unapproved.clone();
            let cause = NotExecutedCause::PrecedingNeedsApproval { tool };
            return Some(Outcome::NotExecuted(cause));
        }
        let batch = self.queue.get(number).and_then(|entry| entry.call.batch);
        if let Some(tool) = batch.and_then(|batch| self.batches.canceled.get(&batch)) {
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
