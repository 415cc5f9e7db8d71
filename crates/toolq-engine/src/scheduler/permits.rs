//! Permits for calls that run at the same time, shared by a turn and the turns of all agents in it. The gates decide
//! the order of calls; permits only limit how many run.
//!
//! An agent waits for its own calls, so it must never hold a permit that one of them needs. To ensure that, agents take
//! permits of their level of nesting only, and all other calls share one limit. A call that holds a permit waits at
//! most for permits of deeper levels, so some call can always continue.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::scheduler::descriptor_limits::DescriptorLimits;

/// A limit on how many calls run at once. Clones share its permits.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit(Arc<PermitPool>);

#[derive(Debug)]
struct PermitPool {
    free: AtomicUsize,
    released: Notify,
}

/// A permit to run one call. Dropping it releases it.
#[derive(Debug)]
pub struct Permit(ConcurrencyLimit);

impl ConcurrencyLimit {
    /// Creates a limit of `jobs` calls.
    pub fn new(jobs: NonZeroUsize) -> Self {
        Self(Arc::new(PermitPool {
            free: AtomicUsize::new(jobs.get()),
            released: Notify::new(),
        }))
    }

    /// Takes a permit, if one is free.
    pub fn try_acquire(&self) -> Option<Permit> {
        let decrement = |free: usize| free.checked_sub(1);
        let taken = self.0.free.fetch_update(Relaxed, Relaxed, decrement);
        taken.ok().map(|_| Permit(self.clone()))
    }

    /// Resolves when a permit is released from now on. It may already have been taken again.
    pub fn permit_released(&self) -> Notified<'_> {
        self.0.released.notified()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Self(ConcurrencyLimit(pool)) = self;
        pool.free.fetch_add(1, Relaxed);
        pool.released.notify_waiters();
    }
}

/// The limits of a run on calls at the same time. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct CallLimits {
    /// For all calls except those of agents.
    pub(crate) calls: ConcurrencyLimit,
    max_agents: NonZeroUsize,
    agents_by_depth: Arc<Mutex<Vec<ConcurrencyLimit>>>,
}

impl CallLimits {
    /// Creates the limits for `jobs` calls at once, or for as many as this process has descriptors for.
    pub(crate) fn new(jobs: NonZeroUsize) -> Self {
        let limits = DescriptorLimits::of_process(jobs);
        Self {
            calls: ConcurrencyLimit::new(limits.calls),
            max_agents: limits.agents,
            agents_by_depth: Arc::default(),
        }
    }

    /// Returns the limit for agents that are nested in `depth` other agents.
    pub(crate) fn agents_at_depth(&self, depth: usize) -> ConcurrencyLimit {
        let limits = self.agents_by_depth.lock();
        let mut limits = limits.unwrap_or_else(PoisonError::into_inner);
        while limits.len() <= depth {
            limits.push(ConcurrencyLimit::new(self.max_agents));
        }
        limits[depth].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_permit_is_free_again() {
        let limit = ConcurrencyLimit::new(NonZeroUsize::MIN);
        let permit = limit.try_acquire();
        assert!(permit.is_some());
        assert!(limit.clone().try_acquire().is_none());
        drop(permit);
        assert!(limit.try_acquire().is_some());
    }

    /// An agent may hold a permit while it waits for one of another level.
    #[test]
    fn agents_of_another_depth_and_calls_have_permits_of_their_own() {
        let limits = CallLimits::new(NonZeroUsize::MIN);
        let agent = limits.agents_at_depth(1).try_acquire();
        assert!(agent.is_some());
        assert!(limits.agents_at_depth(1).try_acquire().is_none());
        assert!(limits.agents_at_depth(0).try_acquire().is_some());
        assert!(limits.agents_at_depth(2).try_acquire().is_some());
        assert!(limits.calls.try_acquire().is_some());
    }
}
