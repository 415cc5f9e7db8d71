//! Starts calls that the gate has admitted, only after their start has been emitted.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::{debug, debug_span};

use crate::attempt::Attempt;
use crate::digests::idempotency_key;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::{CallJob, CallState, Clearance, Permit, QueueEntry, RunningCall};
use toolq_core::check::recheck_locks;
use toolq_core::os::failpoint;
use toolq_core::types::{Effect, EmitError, Event, EventSink as _, Outcome};

impl Dispatcher<'_> {
    /// Starts every call that may run now.
    pub(crate) fn start_ready_calls(&mut self) {
        self.permits.begin_round();
        self.start_admitted_calls();
        self.permits.end_round();
    }

    fn start_admitted_calls(&mut self) {
        loop {
            let mut admitted = self.permit_again();
            admitted.extend(self.start_throttled());
            self.request_approval();
            admitted.extend(self.admit_calls());
            let cleared = self.clear_starts(admitted);
            if cleared.is_empty() {
                return;
            }
            match self.emit_and_start(&cleared) {
                Ok(()) => return,
                Err(EmitError(why)) => self.skip_calls(cleared, &Outcome::LogRefused(why)),
            }
        }
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
        let key = idempotency_key(task, &job.call, &job.accepted.input);
        RunningCall::new(job, key, self.engine.control.now(), permit)
    }

    /// Emits the starts of these calls in one slice, so that a log can record them together.
    pub(crate) fn emit_starts(&mut self, admitted: &[usize]) -> Result<(), EmitError> {
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
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        if !run.is_probing() && !run.job.is_agent() {
            self.stats.has_effect |= run.job.accepted.tool.effect != Effect::Read;
        }
        let is_shown = self.sink.shows_progress(call);
        let progress = self.attempt_tasks.progress_sender(number, is_shown);
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
            tool = &*call.tool_name,
            attempt = run.attempt,
            probe = run.is_probing()
        );
        debug!(parent: &span, "started");
        let cache = &self.engine.result_cache;
        let root = &self.engine.settings.tools.root;
        cache.note_change(&run.job.accepted, root);
        run.cache_ticket = cache.ticket(&run.job.accepted, root);
        let (cancel, canceled) = oneshot::channel();
        run.cancel = Some(cancel);
        run.clearance = Clearance::Started;
        if let Some(slot) = &run.slot {
            slot.note_started(self.engine.control.now());
        }
        let trace = self.engine.settings.trace.as_ref();
        let trace = trace.map(|trace| match &self.engine.turn_origin.traceparent {
            Some(parent) => trace.of_turn(parent).for_call(call),
            None => trace.for_call(call),
        });
        let attempt = Box::new(Attempt {
            job: Arc::clone(&run.job),
            is_probe: run.is_probing(),
            number: run.attempt,
            idempotency_key: Arc::clone(&run.idempotency_key),
            trace,
            timeout: run.attempt_timeout(self.engine.control.now()),
            cancel: canceled,
            progress,
            dispatcher: handle,
            outputs: self.engine.outputs.clone(),
            parent_scope: self.engine.agent_scope.clone(),
            output_counter: self.engine.run_budget.output_counter(),
            control: self.engine.control.clone(),
        });
        let runner = Arc::clone(&self.engine.runner);
        let _ = failpoint("start.before");
        self.attempt_tasks
            .begin_attempt(number, runner, attempt, span);
        let _ = failpoint("start.after");
    }
}

/// Returns the event for the start of a call's current attempt, or of its probe.
pub(crate) fn start_event(entry: &QueueEntry) -> Option<Event<'_>> {
    let CallState::Running(run) = &entry.state else {
        return None;
    };
    if run.is_probing() {
        return Some(Event::Probing { call: &entry.call });
    }
    Some(Event::Started {
        call: &entry.call,
        accepted: &run.job.accepted,
        attempt: run.attempt,
        idempotency_key: &run.idempotency_key,
        claim: run.claim.as_ref(),
        waited: run.waited,
    })
}
