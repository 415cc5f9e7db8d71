//! Starts calls: once the gate admits them, if their tool isn't paused, and only after their start has been emitted.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::{debug, debug_span};

use crate::attempt::Attempt;
use crate::digests::idempotency_key;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::{CallJob, CallState, Permit, QueueEntry, RunningCall};
use toolq_core::check::recheck_locks;
use toolq_core::os::failpoint;
use toolq_core::schedule::CallAccess;
use toolq_core::types::{
    AcceptedCall, Effect, EmitError, Event, HaltCause, NotExecutedCause, Outcome, Tool,
};

impl Dispatcher<'_> {
    /// Starts every call that may run now.
    pub(crate) fn start_ready_calls(&mut self) {
        loop {
            self.awaited_limit = None;
            let mut admitted = self.start_throttled();
            self.request_approval();
            admitted.extend(self.admit_calls());
            if admitted.is_empty() {
                return;
            }
            match self.emit_starts(&admitted) {
                Ok(()) => {
                    return admitted
                        .iter()
                        .for_each(|number| self.start_attempt(*number));
                }
                Err(EmitError(why)) => {
                    self.skip_calls(admitted, &Outcome::LogRefused(why));
                }
            }
        }
    }

    /// Admits calls through the gate. Those that may not run after all are answered here.
    fn admit_calls(&mut self) -> Vec<usize> {
        let mut admitted = Vec::new();
        while let Some(number) = self.next_at_gate() {
            let job = self.queue.waiting_job(number);
            let Some(job) = job else {
                self.gate.enter();
                continue;
            };
            if !self.is_approved(number, &job)
                && self.check_blocked(number, &job.accepted.tool).is_none()
            {
                if self.queue.waiting_job(number).is_none() {
                    // It was denied.
                    continue;
                }
                self.request_approval();
                if self.lacks_approver(number) {
                    self.finish_unapproved(number);
                    continue;
                }
                break;
            }
            if !self.enter_turn_gate(&job) {
                break;
            }
            if self.check_blocked(number, &job.accepted.tool).is_none()
                && let Some(outcome) = self.find_cached(&job.accepted)
            {
                self.gate.enter();
                self.gate.leave(number);
                self.finish_call(number, outcome);
                continue;
            }
            let limits = self.limits_of(&job);
            if !limits.is_empty() {
                self.gate.enter();
                self.throttle_call(number, &limits, false);
                admitted.extend(self.start_throttled());
                self.request_approval();
                continue;
            }
            let limit = self.engine.limit_for(&job);
            let Some(permit) = limit.try_acquire() else {
                debug!(
                    id = job.call.id,
                    agent = job.is_agent(),
                    "waits for a place: as many calls run as may"
                );
                self.awaited_limit = Some(limit);
                break;
            };
            self.gate.enter();
            if !self.may_start_with_locks(number, &job) {
                continue;
            }
            if let Some(outcome) = self.blocked_outcome(number, &job.accepted.tool) {
                self.gate.leave(number);
                self.finish_call(number, outcome);
            } else {
                let run = self.new_running_call(job, permit);
                self.queue.set_running(number, run);
                admitted.push(number);
            }
        }
        self.request_approval();
        admitted
    }

    /// Returns the result of an earlier call that answers this one.
    fn find_cached(&self, accepted: &AcceptedCall) -> Option<Outcome> {
        let root = &self.engine.settings.tools.root;
        self.engine.result_cache.find(accepted, root)
    }

    /// Resolves the paths in the locks of a call once more, right before it starts. Returns false if it has to wait again,
    /// because they lead elsewhere now.
    pub(crate) fn may_start_with_locks(&mut self, number: usize, job: &CallJob) -> bool {
        let root = &self.engine.settings.tools.root;
        match recheck_locks(&job.accepted, root) {
            Some(locks) if self.engine.settings.jobs.get() > 1 => {
                self.gate.change_locks(number, locks)
            }
            _ => true,
        }
    }

    /// Returns a call that is about to start for the first time in this run.
    pub(crate) fn new_running_call(&self, job: Arc<CallJob>, permit: Permit) -> RunningCall {
        let task = &self.engine.settings.task_id;
        let prior = job.prior_attempts.as_ref();
        let logged_key = prior.and_then(|prior| prior.idempotency_key.clone());
        let key =
            logged_key.unwrap_or_else(|| idempotency_key(task, &job.call, &job.accepted.input));
        RunningCall::new(job, key, self.engine.control.now(), permit)
    }

    /// Returns the call that may enter the gate, if there is one. Whether it needs an approval is known then.
    fn next_at_gate(&mut self) -> Option<usize> {
        self.request_approval();
        self.gate.peek()
    }

    /// Lets the turn in to start a call, if other turns run at the same time and let it.
    fn enter_turn_gate(&mut self, job: &CallJob) -> bool {
        let settings = &self.engine.settings;
        let Some(gate) = &mut self.turn_gate else {
            return true;
        };
        // With a single job nothing runs in parallel, not even agents, which need no permit.
        let is_parallel = settings.jobs.get() > 1;
        let safe = job.accepted.safe && is_parallel;
        let locks = job.accepted.locks.as_ref();
        let locks = locks.filter(|_| is_parallel && gate.uses_locks()).cloned();
        let access = CallAccess {
            safe,
            locks: locks
                .map(|locks| recheck_locks(&job.accepted, &settings.tools.root).unwrap_or(locks)),
        };
        match (gate.is_alone(), self.gate.has_admitted()) {
            // With locks, calls of this turn may run alongside one that keeps other turns out.
            (true, true) => true,
            // Other turns may run alongside what runs of this one, but not alongside this call.
            (false, true) if !safe => false,
            _ => gate.try_enter(&access),
        }
    }

    /// Lets other turns in while no call of this one runs.
    pub(crate) fn leave_turn_gate(&mut self) {
        let has_work = self.gate.has_admitted() || self.awaited_limit.is_some();
        let next = self.gate.next_waiting();
        let next = next.and_then(|number| Some((number, self.queue.waiting_job(number)?)));
        let is_ready = next.is_some_and(|(number, job)| self.is_approved(number, &job));
        let gate = self.turn_gate.as_mut().filter(|_| !has_work);
        if let Some(gate) = gate.filter(|gate| !gate.is_waiting() || !is_ready) {
            gate.leave();
        }
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
        if let Some(tool) = batch.and_then(|batch| self.cancelled_batches.get(&batch)) {
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

    /// Emits the starts of these calls in one slice, so that a log can record them together.
    fn emit_starts(&mut self, admitted: &[usize]) -> Result<(), EmitError> {
        let mut new_batches = Vec::new();
        for number in admitted {
            let batch = self.queue.get(*number).and_then(|entry| entry.call.batch);
            let new = batch.filter(|batch| self.started_batches.insert(*batch));
            new_batches.push(new.map(|batch| (batch, self.queue.batch_calls(*number))));
        }
        let mut events = Vec::with_capacity(admitted.len() + 1);
        for (number, new_batch) in admitted.iter().zip(&new_batches) {
            events.extend(
                new_batch
                    .as_ref()
                    .map(|(batch, calls)| Event::BatchStarted {
                        turn: self.turn_number,
                        batch: *batch,
                        calls,
                    }),
            );
            events.extend(self.queue.get(*number).and_then(start_event));
        }
        self.sink.emit(&events)
    }

    /// Starts the next attempt of a call.
    pub(crate) fn start_attempt(&mut self, number: usize) {
        let progress = self.attempt_tasks.progress_sender(number);
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        let handle = run
            .job
            .is_agent()
            .then(|| self.attempt_tasks.dispatcher_handle(number, call));
        if handle.is_some() {
            let agent = &run.job.accepted.tool.name;
            let _ = self.sink.emit(&[Event::AgentStarted { call, agent }]);
        }
        let span = debug_span!(
            "call",
            id = call.tool_use_id,
            tool = call.tool_name,
            attempt = run.attempt,
            probe = run.is_probing
        );
        debug!(parent: &span, "started");
        let cache = &self.engine.result_cache;
        let root = &self.engine.settings.tools.root;
        cache.note_change(&run.job.accepted, root);
        run.cache_ticket = cache.ticket(&run.job.accepted, root);
        let (cancel, cancelled) = oneshot::channel();
        run.cancel = Some(cancel);
        if let Some(slot) = &run.slot {
            slot.note_started(self.engine.control.now());
        }
        let trace = self.engine.settings.trace.as_ref();
        let attempt = Attempt {
            job: Arc::clone(&run.job),
            is_probe: run.is_probing,
            number: run.attempt,
            idempotency_key: Arc::clone(&run.idempotency_key),
            trace: trace.map(|trace| trace.for_call(call)),
            timeout: run.attempt_timeout(self.engine.control.now()),
            cancel: cancelled,
            progress,
            dispatcher: handle,
            parent_scope: self.engine.agent_scope.clone(),
            output_counter: self.engine.run_budget.output_counter(),
            control: self.engine.control.clone(),
        };
        let runner = Arc::clone(&self.engine.runner);
        let _ = failpoint("start.before");
        self.attempt_tasks
            .spawn_attempt(number, runner, attempt, span);
        let _ = failpoint("start.after");
    }
}

/// Returns the event for the start of a call's current attempt, or of its probe.
pub(crate) fn start_event(entry: &QueueEntry) -> Option<Event<'_>> {
    let CallState::Running(run) = &entry.state else {
        return None;
    };
    if run.is_probing {
        return Some(Event::Probing { call: &entry.call });
    }
    Some(Event::Started {
        call: &entry.call,
        accepted: &run.job.accepted,
        attempt: run.attempt,
        idempotency_key: &run.idempotency_key,
        waited: run.waited,
    })
}
