//! Calls that wait for their start: the gate let them pass, or their backoff has elapsed, but their tool, server or host
//! limits how many calls run at once or how far apart they start. They hold their place in the order, so only calls
//! that may run alongside them pass them.

use std::time::Duration;

use tracing::debug;

use crate::dispatcher::throttled_calls::ThrottledCall;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::{CallJob, Permit};
use crate::state::EngineState;
use toolq_core::schedule::{AppliedLimits, StartWait, applied_limits};
use toolq_core::types::{Event, Outcome};

impl Dispatcher<'_> {
    /// Returns what limits when this call starts.
    pub(crate) fn limits_of(&self, job: &CallJob) -> AppliedLimits {
        let EngineState {
            settings,
            agent_scope,
            ..
        } = &*self.engine;
        let depth = agent_scope.as_ref().map_or(0, |scope| scope.depth as usize);
        let env = |name: &str| settings.environment.get(name);
        applied_limits(&job.accepted, &settings.tools, depth, &env)
    }

    /// Puts a call that the gate let pass in its line. It may be able to start at once.
    pub(crate) fn throttle_call(&mut self, number: usize, limits: &AppliedLimits, is_retry: bool) {
        let ticket = self.engine.start_limiter.enqueue(limits, is_retry);
        let since = self.engine.control.now();
        let mut call = ThrottledCall {
            number,
            ticket,
            is_retry,
            since,
            was_limited: false,
        };
        if let Err(wait) = self.engine.start_limiter.check(&call.ticket, since) {
            self.announce_wait(&mut call, &wait);
        }
        self.throttled.insert(call);
    }

    /// Starts the calls that their limits let start. Returns those that haven't run yet, whose starts are to be emitted.
    pub(crate) fn start_throttled(&mut self) -> Vec<usize> {
        let mut admitted = Vec::new();
        loop {
            self.throttled.begin_check(&self.engine.start_limiter);
            self.end_late_retries();
            let Some((call, permit)) = self.next_due() else {
                return admitted;
            };
            match permit {
                None => self.start_due_retry(&call),
                Some(permit) => admitted.extend(self.start_due_call(&call, permit)),
            }
        }
    }

    /// Takes the next call that may start out of its line, with a permit if it hasn't run yet.
    fn next_due(&mut self) -> Option<(ThrottledCall, Option<Permit>)> {
        let now = self.engine.control.now();
        for mut call in self.throttled.fronts() {
            if let Err(wait) = self.engine.start_limiter.check(&call.ticket, now) {
                self.wake_by(wait.until);
                if !call.was_limited {
                    self.announce_wait(&mut call, &wait);
                    self.throttled.insert(call);
                }
                continue;
            }
            let permit = if call.is_retry {
                None
            } else {
                let Some(job) = self.queue.waiting_job(call.number) else {
                    continue;
                };
                let limit = self.engine.limit_for(&job);
                let Some(permit) = self.permits.take(&limit) else {
                    continue;
                };
                Some(permit)
            };
            self.throttled.remove(&call.ticket);
            return Some((call, permit));
        }
        None
    }

    fn wake_by(&mut self, at: Option<Duration>) {
        let wake_at = &mut self.throttled.wake_at;
        *wake_at = [*wake_at, at].into_iter().flatten().min();
    }

    fn start_due_call(&mut self, call: &ThrottledCall, permit: Permit) -> Option<usize> {
        let job = self.queue.waiting_job(call.number)?;
        if let Some(outcome) = self.blocked_outcome(call.number, &job.accepted.tool) {
            self.engine.start_limiter.withdraw(&call.ticket);
            self.gate.leave(call.number);
            self.finish_call(call.number, outcome);
            return None;
        }
        if !self.may_start_with_locks(call.number, &job) {
            self.engine.start_limiter.withdraw(&call.ticket);
            return None;
        }
        let now = self.engine.control.now();
        let slot = self
            .engine
            .start_limiter
            .start(call.ticket.clone(), now, call.was_limited);
        let mut run = self.new_running_call(job, permit);
        run.slot = Some(slot);
        run.waited = call.was_limited.then(|| now.saturating_sub(call.since));
        self.queue.set_running(call.number, run);
        Some(call.number)
    }

    fn start_due_retry(&mut self, call: &ThrottledCall) {
        let now = self.engine.control.now();
        self.engine
            .start_limiter
            .start_retry(&call.ticket, now, call.was_limited);
        if let Some((_, run)) = self.queue.running_call(call.number) {
            run.waited = call.was_limited.then(|| now.saturating_sub(call.since));
        }
        self.start_retry(call.number);
    }

    /// Ends the calls whose retries can't start within `timeout.total`, with the outcomes that they have.
    fn end_late_retries(&mut self) {
        let now = self.engine.control.now();
        for call in self.throttled.retries() {
            let Some((_, run)) = self.queue.running_call(call.number) else {
                continue;
            };
            match (
                run.remaining_time(now),
                run.last_outcome.as_deref().cloned(),
            ) {
                (Some(Duration::ZERO), Some(outcome)) => {
                    self.withdraw_ticket(&call);
                    self.finish_call(call.number, outcome);
                }
                (remaining, _) => self.wake_by(remaining.map(|remaining| now + remaining)),
            }
        }
    }

    /// Takes calls that haven't started out of their lines, and away from the gate. Returns their numbers.
    pub(crate) fn withdraw_throttled(&mut self, matches: impl Fn(usize) -> bool) -> Vec<usize> {
        let calls = self.throttled.unstarted(matches);
        for call in &calls {
            self.withdraw_ticket(call);
            self.gate.leave(call.number);
        }
        calls.into_iter().map(|call| call.number).collect()
    }

    /// Takes the calls whose retries wait out of their lines, if they were canceled. Returns them with their outcomes.
    pub(crate) fn withdraw_canceled_retries(&mut self) -> Vec<(usize, Outcome)> {
        let halted = self.halted_by.is_some();
        let mut ended = Vec::new();
        for call in self.throttled.retries() {
            let Some((_, run)) = self.queue.running_call(call.number) else {
                continue;
            };
            if halted || run.canceled_by.is_some() {
                self.withdraw_ticket(&call);
                ended.extend(
                    self.canceled_retry_outcome(call.number)
                        .map(|outcome| (call.number, outcome)),
                );
            }
        }
        ended
    }

    fn withdraw_ticket(&mut self, call: &ThrottledCall) {
        self.throttled.remove(&call.ticket);
        self.engine.start_limiter.withdraw(&call.ticket);
    }

    /// Says once what a call waits for.
    fn announce_wait(&mut self, call: &mut ThrottledCall, wait: &StartWait) {
        call.was_limited = true;
        if let Some(entry) = self.queue.get(call.number) {
            debug!(id = entry.call.tool_use_id, subject = %wait.subject, rate = wait.is_rate, "waits for its start");
            let _ = self.sink.emit(&[Event::Throttled {
                call: &entry.call,
                wait,
            }]);
        }
    }
}
