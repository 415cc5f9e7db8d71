//! The calls of a turn that wait for their turn, in the lines in which they wait.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crate::state::EngineState;
use toolq_core::schedule::{LimitedSubject, StartTicket};

/// The calls that wait. All hold their place in the order of the turn.
#[derive(Debug, Default)]
pub(crate) struct ThrottledCalls {
    lines: HashMap<Arc<[LimitedSubject]>, WaitingLine>,
    /// When the next of them may start, as far as that depends on time alone.
    pub(super) wake_at: Option<Duration>,
}

/// Calls with the same limits, in the order in which they have their turns.
type WaitingLine = BTreeMap<(bool, u64), ThrottledCall>;

/// A call that waits for its turn.
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
        let mut lasts = self.lines.values().filter_map(|line| line.values().last());
        lasts.any(|call| !call.is_retry)
    }

    pub(super) fn insert(&mut self, call: ThrottledCall) {
        let line = self
            .lines
            .entry(Arc::clone(call.ticket.line()))
            .or_default();
        line.insert(call.ticket.order(), call);
    }

    pub(super) fn remove(&mut self, ticket: &StartTicket) -> Option<ThrottledCall> {
        let line = self.lines.get_mut(ticket.line())?;
        let call = line.remove(&ticket.order());
        if line.is_empty() {
            self.lines.remove(ticket.line());
        }
        call
    }

    /// Returns the calls that are next in their lines, in the order in which they have their turn.
    pub(super) fn fronts(&self) -> Vec<ThrottledCall> {
        let fronts = self.lines.values().filter_map(|line| line.values().next());
        let mut fronts: Vec<ThrottledCall> = fronts.cloned().collect();
        fronts.sort_unstable_by_key(|call| call.ticket.order());
        fronts
    }

    /// Returns the calls with these numbers that haven't started.
    pub(super) fn unstarted(&self, matches: impl Fn(usize) -> bool) -> Vec<ThrottledCall> {
        let calls = self.lines.values().flat_map(BTreeMap::values);
        let calls = calls.filter(|call| !call.is_retry && matches(call.number));
        let mut calls: Vec<ThrottledCall> = calls.cloned().collect();
        calls.sort_unstable_by_key(|call| call.number);
        calls
    }

    /// Returns the calls that run already and wait for another attempt. They come first in their lines.
    pub(super) fn retries(&self) -> Vec<ThrottledCall> {
        let retries = self
            .lines
            .values()
            .flat_map(|line| line.values().take_while(|call| call.is_retry));
        let mut retries: Vec<ThrottledCall> = retries.cloned().collect();
        retries.sort_unstable_by_key(|call| call.number);
        retries
    }

    /// Resolves when one of the calls may have its turn. Never resolves if no call waits.
    pub(crate) async fn wait_for_turn(&self, engine: &EngineState) {
        if self.lines.is_empty() {
            return pending().await;
        }
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
            () = engine.start_limiter.changed() => {}
        }
    }
}
