//! What its user knows about the calls that wait in the lines of a [`StartLimiter`](crate::schedule::StartLimiter).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::schedule::applied_limits::LimitedSubject;
use crate::schedule::start_limiter::{LinePosition, StartTicket};

/// Calls that wait for their start, with others of the same limits in one line, in the order in which they start.
#[derive(Debug)]
pub struct WaitingLines<T> {
    lines: HashMap<Arc<[LimitedSubject]>, BTreeMap<LinePosition, T>>,
}

impl<T> Default for WaitingLines<T> {
    fn default() -> Self {
        Self {
            lines: HashMap::new(),
        }
    }
}

impl<T> WaitingLines<T> {
    /// Adds the call with this ticket, or replaces what is known about it.
    pub fn insert(&mut self, ticket: &StartTicket, call: T) {
        let line = self.lines.entry(Arc::clone(ticket.line())).or_default();
        line.insert(ticket.position(), call);
    }

    /// Removes the call with this ticket.
    pub fn remove(&mut self, ticket: &StartTicket) -> Option<T> {
        let line = self.lines.get_mut(ticket.line())?;
        let call = line.remove(&ticket.position());
        if line.is_empty() {
            self.lines.remove(ticket.line());
        }
        call
    }

    /// Returns whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the calls of each line, in order.
    pub fn lines(&self) -> impl Iterator<Item = impl DoubleEndedIterator<Item = &T>> {
        self.lines.values().map(BTreeMap::values)
    }
}

impl<T: Clone> WaitingLines<T> {
    /// Returns the first call of each line, in the order in which they start if nothing limits them.
    pub fn fronts(&self) -> Vec<T> {
        let fronts = self.lines.values().filter_map(BTreeMap::first_key_value);
        let mut fronts: Vec<_> = fronts.collect();
        fronts.sort_unstable_by_key(|(position, _)| **position);
        fronts.into_iter().map(|(_, call)| call.clone()).collect()
    }
}
