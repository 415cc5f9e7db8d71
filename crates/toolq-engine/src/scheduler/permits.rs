//! Permits for calls that run at the same time, shared by a turn and the turns of all agents in it. The gates decide
//! the order of calls; permits only limit how many run.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The concurrency limit of a run. Clones share its permits.
#[derive(Debug, Clone)]
pub(crate) struct ConcurrencyLimit(Arc<PermitPool>);

#[derive(Debug)]
struct PermitPool {
    free: AtomicUsize,
    released: Notify,
}

/// A permit to run one call. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct Permit(ConcurrencyLimit);

impl ConcurrencyLimit {
    pub(crate) fn new(jobs: NonZeroUsize) -> Self {
        Self(Arc::new(PermitPool {
            free: AtomicUsize::new(jobs.get()),
            released: Notify::new(),
        }))
    }

    /// Takes a permit, if one is free.
    pub(crate) fn try_acquire(&self) -> Option<Permit> {
        let decrement = |free: usize| free.checked_sub(1);
        let taken = self.0.free.fetch_update(Relaxed, Relaxed, decrement);
        taken.ok().map(|_| Permit(self.clone()))
    }

    /// Resolves when a permit is released from now on. By then it may have been taken again.
    pub(crate) fn permit_released(&self) -> Notified<'_> {
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
