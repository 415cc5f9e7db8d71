//! What decides about the order of two calls: whether they are concurrency-safe, and their locks.

use crate::types::{AcceptedCall, CallLock, CallLocks, LockMode};

/// What decides about the order of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAccess {
    /// Whether it is concurrency-safe. With locks, this is for calls without.
    pub safe: bool,
    /// Its locks, if its tool declares any.
    pub locks: Option<CallLocks>,
}

/// Why a call waits for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderCause<'a> {
    /// One of them isn't concurrency-safe, and has no locks or meets a call without.
    NotSafe,
    /// The other has this lock.
    Lock(&'a CallLock),
}

impl CallAccess {
    /// The access of a call that runs alone.
    pub const ALONE: Self = Self {
        safe: false,
        locks: None,
    };

    /// Returns the access of a call that may run.
    pub fn of(accepted: &AcceptedCall) -> Self {
        Self {
            safe: accepted.safe,
            locks: accepted.locks.clone(),
        }
    }

    /// Returns why this call waits for `earlier`, which came before it. `None` if it doesn't.
    pub fn waits_for<'a>(&self, earlier: &'a Self) -> Option<OrderCause<'a>> {
        let must_wait = match (&earlier.locks, &self.locks) {
            (Some(held), Some(wanted)) => {
                let conflicts =
                    |lock: &&CallLock| wanted.iter().any(|wanted| wanted.conflicts_with(lock));
                return held.iter().find(conflicts).map(OrderCause::Lock);
            }
            (None, Some(_)) => !earlier.safe,
            (_, None) => !(earlier.safe && self.safe),
        };
        must_wait.then_some(OrderCause::NotSafe)
    }

    /// Returns whether a call with this access, which isn't `read`, may change what a call with the access `read` has read.
    /// Only the locks of both can tell that it doesn't.
    pub fn may_change(&self, read: &Self) -> bool {
        let (Some(own), Some(others)) = (&self.locks, &read.locks) else {
            return true;
        };
        let writes = own.iter().filter(|lock| lock.mode == LockMode::Write);
        let mut written = writes.map(|lock| &lock.resource);
        written.any(|resource| others.iter().any(|other| resource.meets(&other.resource)))
    }

    /// Returns whether all calls before it have to finish first, and all calls after it wait for it.
    pub(crate) fn is_barrier(&self) -> bool {
        self.locks.is_none() && !self.safe
    }

    /// Returns whether only barriers, and calls with locks that aren't safe, keep it from running.
    pub(crate) fn is_shared(&self) -> bool {
        self.locks.is_none() && self.safe
    }
}
