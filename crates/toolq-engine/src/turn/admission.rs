//! Lets calls in: each is queued as it arrives, and then admitted in its order, through the gate and to its limits or
//! permits. Those that may not run are answered.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::attempt::CallJob;
use crate::recall::may_write;
use crate::scheduler::Permit;
use crate::turn::RunningTurn;
use crate::turn::call::{CallStats, RunningCall};
use crate::turn::ending::{CallEffects, push_on_failure};
use crate::turn::queue::CallState;
use toolq_core::check::recheck_locks;
use toolq_core::json::Input;
use toolq_core::schedule::CallAccess;
use toolq_core::types::{
    AcceptedCall, Approval, Call, CallRef, CallRequest, CheckedCall, Effect, Event, HaltCause,
    Invocation, NotExecutedCause, OnFailure, Outcome, Rejection, Tool, TurnArrival, Verdict,
};

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

    /// Breaks while a call that isn't approved has to wait, unless it was denied or has no approver.
    fn hold_for_approval(&mut self, number: usize) -> ControlFlow<()> {
        // If it no longer waits, it was denied.
        if self.queue.waiting_job(number).is_none() {
            return Continue(());
        }
        if self.request_approval() != Some(number) {
            return Break(());
        }
        self.go_on_unapproved(number);
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

// Handles arriving calls: each waits at the gate, or is answered at once because it can't run or already did. While a
// model response is streaming, partial inputs and revocations of calls arrive, too.

impl RunningTurn<'_> {
    /// Handles one arrival.
    pub(super) fn handle_arrival(&mut self, arrival: TurnArrival) {
        match arrival {
            TurnArrival::Call(checked) => {
                self.queue.keep_answers();
                self.enqueue_call(*checked);
            }
            TurnArrival::Revoked {
                position,
                rejection,
            } => self.revoke_call(position, rejection),
            TurnArrival::RestSkipped(cause) => self.end_arrivals(&cause),
        }
    }

    /// Appends a call to the queue.
    pub(super) fn enqueue_call(&mut self, checked: CheckedCall) {
        if let Some(position) = checked.repeats {
            let call_ref = Arc::new(CallRef::new(&checked.call, None));
            self.queue.push(call_ref, CallState::Repeats(position));
            return;
        }
        let is_known = checked.known.is_some();
        let is_completion = checked.verdict.is_completion();
        let batch = match (&checked.verdict, self.closed.cause(is_completion)) {
            // A call that an earlier run answered still gets a batch, so that the batches are those of the plan.
            (Verdict::Accepted(accepted), cause) if is_known || cause.is_none() => Some(
                self.batches
                    .partition
                    .assign_batch(&CallAccess::of(accepted)),
            ),
            _ => None,
        };
        self.stats.calls += 1;
        if checked.call.parent.is_some() {
            self.stats.tool_names.push(checked.call.name.to_string());
        }
        self.stats.rejected += u64::from(matches!(checked.verdict, Verdict::Rejected(_)));
        let _ = self.sink.emit_later(&Event::Queued {
            checked: &checked,
            batch,
        });
        let call_ref = Arc::new(CallRef::new(&checked.call, batch));
        let CheckedCall {
            call,
            verdict,
            known,
            approval,
            unsettled,
            ..
        } = checked;
        let request = |accepted| CallRequest {
            call: &call,
            accepted,
        };
        match (known, verdict) {
            (Some(outcome), verdict) => {
                let completed = !outcome.is_error() && verdict.is_completion();
                self.note_known_failure(&call_ref, &outcome);
                self.answer_on_arrival(&call_ref, request(verdict.accepted()), &outcome);
                if completed {
                    let tool = call.name.to_string();
                    // The calls after it haven't arrived yet.
                    self.closed
                        .call
                        .get_or_insert(NotExecutedCause::SessionCompleted { tool });
                }
            }
            (None, Verdict::Accepted(accepted)) => {
                self.enqueue_accepted(call_ref, call, *accepted, (approval, unsettled));
            }
            (None, Verdict::Rejected(rejection)) => {
                let outcome = Outcome::Rejected(*rejection);
                self.answer_on_arrival(&call_ref, request(None), &outcome);
            }
        }
    }

    fn enqueue_accepted(
        &mut self,
        call_ref: Arc<CallRef>,
        call: Call,
        accepted: AcceptedCall,
        (approval, unsettled): (Option<Box<Approval>>, Option<Box<Outcome>>),
    ) {
        let ticket = self.engine.circuit_breakers.take_ticket(&accepted.tool);
        let access = CallAccess::of(&accepted);
        let needs_approval = accepted.needs_approval;
        let is_completion = matches!(accepted.invocation, Some(Invocation::Completion(_)));
        let is_remembered = may_write(&accepted.tool, &self.engine.settings.tools);
        let job = Arc::new(CallJob {
            call,
            accepted,
            ticket,
            is_remembered,
            approval,
            unsettled,
        });
        let number = self.queue.push(call_ref, CallState::Waiting(job));
        match self.closed.cause(is_completion) {
            // With a single job nothing runs in parallel, not even agents, which need no permit.
            None => {
                let access = if self.engine.settings.jobs.get() > 1 {
                    access
                } else {
                    CallAccess::ALONE
                };
                self.gate.push(number, access);
                if needs_approval {
                    self.approvals.unapproved.insert(number);
                }
            }
            Some(cause) => self.finish_call(number, Outcome::NotExecuted(cause)),
        }
    }

    /// Rejects a waiting call after all. A call that has started continues.
    fn revoke_call(&mut self, position: usize, rejection: Rejection) {
        let number = self.queue.number_at_position(position);
        if let Some(number) = number
            && (self.gate.remove(number)
                || !self.withdraw_throttled(|other| other == number).is_empty())
        {
            self.stats.rejected += 1;
            self.finish_call(number, Outcome::Rejected(rejection));
        }
    }

    /// Skips the calls that are waiting, and those that still arrive.
    fn end_arrivals(&mut self, cause: &NotExecutedCause) {
        self.closed.input.get_or_insert_with(|| cause.clone());
        let skipped = self.withdraw_waiting(cause, |_| true);
        self.apply_effects(skipped);
    }

    /// Lets the failure of a call that ended in an earlier run affect its siblings as it did then. Some of them haven't arrived yet.
    fn note_known_failure(&mut self, call: &CallRef, outcome: &Outcome) {
        let failed = outcome.is_error() && !outcome.is_stopped_externally();
        if let (true, Some(batch), Some(tool)) = (
            failed,
            call.batch,
            self.engine.settings.tools.get(&call.tool_name),
        ) && tool.on_failure == OnFailure::CancelSiblings
        {
            self.batches.canceled.insert(batch, tool.name.clone());
        }
    }

    /// Answers a call that was rejected, or whose outcome the memory knows. If it names a known tool, its outcome counts
    /// for the policies of that tool.
    pub(super) fn answer_on_arrival(
        &mut self,
        call_ref: &Arc<CallRef>,
        request: CallRequest<'_>,
        outcome: &Outcome,
    ) {
        let tool = self.engine.settings.tools.get(&request.call.name);
        let number = self.queue.push(Arc::clone(call_ref), CallState::Finishing);
        let agent = match outcome {
            Outcome::Restored(restored) => restored.agent_usage.clone(),
            _ => None,
        };
        let stats = CallStats {
            agent_usage: agent,
            ..CallStats::default()
        };
        self.answer_call(
            number,
            call_ref,
            request,
            tool.map(|tool| &**tool),
            outcome,
            stats,
        );
        let mut effects = CallEffects::new();
        if let Some(tool) = tool {
            let ticket = self.engine.circuit_breakers.take_ticket(tool);
            self.engine
                .circuit_breakers
                .record_outcome(tool, ticket, outcome);
            push_on_failure(number, tool, outcome, &mut effects);
        }
        self.apply_effects(effects);
    }
}

/// Returns the key by which a callee recognizes a call that it receives twice.
///
/// This is the SHA-256, in hex, of the task, of the call's turn, position, tool and input, and of the positions of the
/// agents that the call is nested in. It is the same for every attempt, and differs from
/// the key of every other call. A call that a memory claims has the key of its claim instead.
pub(crate) fn idempotency_key(task: &str, call: &Call, input: &Input) -> String {
    let mut hasher = Sha256::new();
    let fixed_fields = [
        task.len() as u64,
        call.turn as u64,
        call.position as u64,
        call.name.len() as u64,
    ];
    for number in fixed_fields {
        hasher.update(number.to_le_bytes());
    }
    hasher.update(task);
    hasher.update(&*call.name);
    hasher.update(input.text());
    if let Some(parent) = &call.parent {
        let ancestors = std::iter::successors(Some(&**parent), |agent| agent.parent.as_deref());
        for agent in ancestors {
            hasher.update(b"\0within");
            hasher.update((agent.turn as u64).to_le_bytes());
            hasher.update((agent.position as u64).to_le_bytes());
        }
    }
    HEXLOWER.encode(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All attempts of a call have one key, in later runs, too, so that a server recognizes a request that it got
    /// twice.
    #[test]
    fn a_key_depends_on_task_position_tool_and_input() {
        let key = |task, turn, position, name: &str, input: &str| {
            let call = Call {
                turn,
                position,
                id: "any".to_owned(),
                name: name.into(),
                input: Input::parse(input).map_err(Box::new),
                parent: None,
                has_number_id: false,
                kind: toolq_core::types::CallKind::Function,
            };
            idempotency_key(task, &call, &Input::parse(input).unwrap())
        };
        let keys = [
            key("t", 0, 0, "a", "{}"),
            key("u", 0, 0, "a", "{}"),
            key("t", 0, 1, "a", "{}"),
            key("t", 1, 0, "a", "{}"),
            key("t", 0, 0, "b", "{}"),
            key("t", 0, 0, "a", r#"{"x":1}"#),
        ];
        assert_eq!(keys[0], key("t", 0, 0, "a", "{}"));
        assert_eq!(keys[0].len(), 64);
        assert!(keys[1..].iter().all(|other| *other != keys[0]));
    }
}
