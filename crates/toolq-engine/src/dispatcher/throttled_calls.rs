//! The calls of a turn that their limits don't let start yet, in the lines in which they wait.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

use crate::scheduler::SharedStartLimiter;
use crate::state::EngineState;
use toolq_core::schedule::{StartTicket, WaitingLines};

/// The calls that wait for their start. All hold their place in the order of the turn.
#[derive(Debug, Default)]
pub(crate) struct ThrottledCalls {
    lines: WaitingLines<ThrottledCall>,
    /// When the next of them may start, as far as that depends on time alone.
    pub(super) wake_at: Option<Duration>,
    /// What has changed since their limits were last checked.
    changes: Option<watch::Receiver<()>>,
}

/// A call that waits for its start.
#[derive(Debug, Clone)]
pub(super) struct ThrottledCall {
    pub(super) number: usize,
    pub(super) ticket: StartTicket,
    /// It runs already, and another attempt is to start.
    pub(super) is_retry: bool,
    pub(super) since: Duration,
    /// Whether a limit kept it from starting, rather than only a missing permit.
    pub(super) was_limited: bool,
}

impl ThrottledCalls {
    /// Returns whether calls wait that haven't started. They come last in their lines.
    pub(crate) fn has_unstarted(&self) -> bool {
        let mut lasts = self.lines.lines().filter_map(|mut line| line.next_back());
        lasts.any(|call| !call.is_retry)
    }

    pub(super) fn insert(&mut self, call: ThrottledCall) {
        let ticket = call.ticket.clone();
        self.lines.insert(&ticket, call);
    }

    pub(super) fn remove(&mut self, ticket: &StartTicket) -> Option<ThrottledCall> {
        self.lines.remove(ticket)
    }

    /// Returns the calls that are next in their lines, in the order in which they start if nothing limits them.
    pub(super) fn fronts(&self) -> Vec<ThrottledCall> {
        self.lines.fronts()
    }

    /// Returns the calls with these numbers that haven't started.
    pub(super) fn unstarted(&self, matches: impl Fn(usize) -> bool) -> Vec<ThrottledCall> {
        let calls = self.lines.lines().flatten();
        let calls = calls.filter(|call| !call.is_retry && matches(call.number));
        let mut calls: Vec<ThrottledCall> = calls.cloned().collect();
        calls.sort_unstable_by_key(|call| call.number);
        calls
    }

    /// Returns the calls that run already and wait for another attempt. They come first in their lines.
    pub(super) fn retries(&self) -> Vec<ThrottledCall> {
        let retries = self
            .lines
            .lines()
            .flat_map(|line| line.take_while(|call| call.is_retry));
        let mut retries: Vec<ThrottledCall> = retries.cloned().collect();
        retries.sort_unstable_by_key(|call| call.number);
        retries
    }

    /// Notes that the limits are about to be checked. Changes after this are noticed by [`Self::wait_for_start`].
    pub(super) fn begin_check(&mut self, limiter: &SharedStartLimiter) {
        self.wake_at = None;
        self.changes
            .get_or_insert_with(|| limiter.changes())
            .mark_unchanged();
    }

    /// Resolves when one of the calls may be able to start. Never resolves if no call waits.
    pub(crate) async fn wait_for_start(&mut self, engine: &EngineState) {
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
