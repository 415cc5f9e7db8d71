//! The limits of tools, servers and hosts on when calls start, shared by a turn, the turns of all agents in it, and the
//! turns that run at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use toolq_core::schedule::{AppliedLimits, StartLimiter, StartTicket, StartWait};

/// Starts calls as their limits say. Clones share the limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedStartLimiter(Arc<LimiterState>);

#[derive(Debug, Default)]
struct LimiterState {
    limiter: Mutex<StartLimiter>,
    /// Its version counts the starts, ends and withdrawals.
    changed: watch::Sender<()>,
}

/// The place of a running call in the limits that apply to it. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct StartSlot {
    limiter: SharedStartLimiter,
    ticket: StartTicket,
}

impl SharedStartLimiter {
    /// See [`StartLimiter::enqueue`].
    pub(crate) fn enqueue(&self, limits: &AppliedLimits, is_retry: bool) -> StartTicket {
        self.lock().enqueue(limits, is_retry)
    }

    /// See [`StartLimiter::check`].
    pub(crate) fn check(&self, ticket: &StartTicket, now: Duration) -> Result<(), StartWait> {
        self.lock().check(ticket, now)
    }

    /// Starts a call that its limits let start.
    pub(crate) fn start(&self, ticket: StartTicket, now: Duration, waited: bool) -> StartSlot {
        self.lock().start(&ticket, now, waited);
        self.0.changed.send_replace(());
        StartSlot {
            limiter: self.clone(),
            ticket,
        }
    }

    /// Starts another attempt of a call that runs.
    pub(crate) fn start_retry(&self, ticket: &StartTicket, now: Duration, waited: bool) {
        self.lock().start(ticket, now, waited);
        self.0.changed.send_replace(());
    }

    /// Takes a call that won't start out of its line.
    pub(crate) fn withdraw(&self, ticket: &StartTicket) {
        self.lock().withdraw(ticket);
        self.0.changed.send_replace(());
    }

    /// Returns what notices when a call starts, ends or is withdrawn from now on, also while nobody waits for that.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, StartLimiter> {
        let limiter = self.0.limiter.lock();
        limiter.unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartSlot {
    /// Records when an attempt of the call has really started, which is after its start was recorded.
    pub(crate) fn note_started(&self, now: Duration) {
        self.limiter.lock().note_started(&self.ticket, now);
    }
}

impl Drop for StartSlot {
    fn drop(&mut self) {
        self.limiter.lock().finish(&self.ticket);
        self.limiter.0.changed.send_replace(());
    }
}
