//! Calls that wait for their start: the gate let them pass, or their backoff has elapsed, but their tool, server or host
//! limits how many calls run at once or how far apart they start. They hold their place in the order, so only calls
//! that may run alongside them pass them.

use std::collections::HashMap;
use std::future::pending;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::scheduler::{Permit, SharedStartLimiter};
use crate::state::EngineState;
use crate::turn::RunningTurn;
use toolq_core::schedule::{AppliedLimits, StartTicket, StartWait, WaitingLines};
use toolq_core::types::Event;

/// The calls of a turn that their limits don't let start yet, in the lines in which they wait.
#[derive(Debug, Default)]
pub(super) struct ThrottledCalls {
    lines: WaitingLines<ThrottledCall>,
    /// Those that run already, by number, with what tells them that another attempt may start, and how long it was delayed.
    retries: HashMap<usize, (StartTicket, oneshot::Sender<Option<Duration>>)>,
    /// When the next of them may start, as far as that depends on time alone.
    wake_at: Option<Duration>,
    /// What has changed since their limits were last checked.
    changes: Option<watch::Receiver<()>>,
}

/// A call that waits for its start.
#[derive(Debug, Clone)]
struct ThrottledCall {
    number: usize,
    ticket: StartTicket,
    /// It runs already, and another attempt is to start.
    is_retry: bool,
    since: Duration,
    /// Whether a limit kept it from starting, rather than only a missing permit.
    was_limited: bool,
}

/// A call that runs, and whose limits apply to its next attempt, too.
pub(super) struct RetryInLine {
    pub(super) number: usize,
    pub(super) limits: AppliedLimits,
    /// Receives how long the limits delayed the attempt, once it may start.
    pub(super) reply: oneshot::Sender<Option<Duration>>,
}

impl ThrottledCalls {
    /// Returns whether calls wait that haven't started. They come last in their lines.
    pub(super) fn has_unstarted(&self) -> bool {
        let mut lasts = self.lines.lines().filter_map(|mut line| line.next_back());
        lasts.any(|call| !call.is_retry)
    }

    /// Takes the calls with such numbers that haven't started out of their lines. Returns their numbers.
    fn withdraw(
        &mut self,
        limiter: &SharedStartLimiter,
        matches: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let calls = self.lines.lines().flatten();
        let calls = calls.filter(|call| !call.is_retry && matches(call.number));
        let calls: Vec<ThrottledCall> = calls.cloned().collect();
        for call in &calls {
            self.lines.remove(&call.ticket);
            limiter.withdraw(&call.ticket);
        }
        calls.into_iter().map(|call| call.number).collect()
    }

    /// Takes a call that has ended out of its line, if it waits for another attempt.
    pub(super) fn withdraw_retry(&mut self, number: usize, engine: &EngineState) {
        if let Some((ticket, _)) = self.retries.remove(&number) {
            self.lines.remove(&ticket);
            engine.start_limiter.withdraw(&ticket);
        }
    }

    /// Notes that the limits are about to be checked. Changes after this are noticed by [`Self::wait_for_start`].
    fn begin_check(&mut self, limiter: &SharedStartLimiter) {
        self.wake_at = None;
        self.changes
            .get_or_insert_with(|| limiter.changes())
            .mark_unchanged();
    }

    /// Resolves when one of the calls may be able to start. Never resolves if no call waits.
    pub(super) async fn wait_for_start(&mut self, engine: &EngineState) {
        let Some(changes) = self.changes.as_mut().filter(|_| !self.lines.is_empty()) else {
            return pending().await;
        };
        let due = async {
            match self.wake_at {
                Some(at) => {
                    let wait = at.saturating_sub(engine.control.now());
                    engine.control.sleep(wait).await;
                }
                None => pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            _ = changes.changed() => {}
        }
    }
}

impl RunningTurn<'_> {
    /// Puts a call that the gate let pass, or another attempt of one that runs, in its line. It may be able to start at once.
    pub(super) fn throttle_call(
        &mut self,
        number: usize,
        limits: &AppliedLimits,
        is_retry: bool,
    ) -> StartTicket {
        let ticket = self.engine.start_limiter.enqueue(limits, is_retry);
        let since = self.engine.control.now();
        let mut call = ThrottledCall {
            number,
            ticket: ticket.clone(),
            is_retry,
            since,
            was_limited: false,
        };
        if let Err(wait) = self.engine.start_limiter.check(&ticket, since) {
            self.announce_wait(&mut call, &wait);
        }
        self.lines.lines.insert(&ticket, call);
        ticket
    }

    pub(super) fn throttle_retry(&mut self, retry: RetryInLine) {
        if retry.reply.is_closed() {
            return;
        }
        let ticket = self.throttle_call(retry.number, &retry.limits, true);
        self.lines
            .retries
            .insert(retry.number, (ticket, retry.reply));
    }

    /// Lets calls start that their limits let start.
    pub(super) fn start_throttled(&mut self) {
        loop {
            self.lines.begin_check(&self.engine.start_limiter);
            let Some((call, permit)) = self.next_due() else {
                return;
            };
            match permit {
                None => self.start_due_retry(&call),
                Some(permit) => self.start_due_call(&call, permit),
            }
        }
    }

    /// Takes the next call that may start out of its line, with a permit if it hasn't run yet.
    fn next_due(&mut self) -> Option<(ThrottledCall, Option<Permit>)> {
        let now = self.engine.control.now();
        for mut call in self.lines.lines.fronts() {
            if let Err(wait) = self.engine.start_limiter.check(&call.ticket, now) {
                let wake_at = &mut self.lines.wake_at;
                *wake_at = [*wake_at, wait.until].into_iter().flatten().min();
                if !call.was_limited {
                    self.announce_wait(&mut call, &wait);
                    let ticket = call.ticket.clone();
                    self.lines.lines.insert(&ticket, call);
                }
                continue;
            }
            let permit = if call.is_retry {
                None
            } else {
                let Some(job) = self.queue.waiting_job(call.number) else {
                    continue;
                };
                let Some(permit) = self.permits.take(&self.engine.limit_for(&job)) else {
                    continue;
                };
                Some(permit)
            };
            self.lines.lines.remove(&call.ticket);
            return Some((call, permit));
        }
        None
    }

    fn start_due_call(&mut self, call: &ThrottledCall, permit: Permit) {
        let limiter = &self.engine.start_limiter;
        let Some(mut run) = self.admit_to_run(call.number, permit) else {
            limiter.withdraw(&call.ticket);
            return;
        };
        let now = self.engine.control.now();
        run.slot = Some(limiter.start(call.ticket.clone(), now, call.was_limited));
        run.waited = call.was_limited.then(|| now.saturating_sub(call.since));
        self.begin_call(run);
    }

    fn start_due_retry(&mut self, call: &ThrottledCall) {
        let limiter = &self.engine.start_limiter;
        let waiting = self.lines.retries.remove(&call.number);
        let Some((_, reply)) = waiting.filter(|(_, reply)| !reply.is_closed()) else {
            limiter.withdraw(&call.ticket);
            return;
        };
        let now = self.engine.control.now();
        limiter.start_retry(&call.ticket, now, call.was_limited);
        let _ = reply.send(call.was_limited.then(|| now.saturating_sub(call.since)));
    }

    /// Takes calls that haven't started out of their lines, and away from the gate. Returns their numbers.
    pub(super) fn withdraw_throttled(&mut self, matches: impl Fn(usize) -> bool) -> Vec<usize> {
        let numbers = self.lines.withdraw(&self.engine.start_limiter, matches);
        for number in &numbers {
            self.gate.leave(*number);
        }
        numbers
    }

    /// Says once what a call waits for.
    fn announce_wait(&self, call: &mut ThrottledCall, wait: &StartWait) {
        call.was_limited = true;
        if let Some(entry) = self.queue.get(call.number) {
            self.emit(&Event::Throttled {
                call: &entry.call,
                wait,
            });
        }
    }
}
