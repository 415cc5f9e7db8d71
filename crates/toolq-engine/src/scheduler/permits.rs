//! Places for calls that run at once, shared by a turn and the turns of all agents in it. The gates decide about order;
//! here is only how many.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The places of a run. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Arc<Places>);

#[derive(Debug)]
struct Places {
    free: AtomicUsize,
    freed: Notify,
}

/// A place that is taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Slots);

impl Slots {
    pub(crate) fn new(jobs: NonZeroUsize) -> Self {
        Self(Arc::new(Places {
            free: AtomicUsize::new(jobs.get()),
            freed: Notify::new(),
        }))
    }

    /// Takes a place, if one is free.
    pub(crate) fn take(&self) -> Option<Slot> {
        let less = |free: usize| free.checked_sub(1);
        let taken = self.0.free.fetch_update(Relaxed, Relaxed, less);
        taken.ok().map(|_| Slot(self.clone()))
    }

    /// Resolves when a place gets free from now on, whoever takes it then.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.0.freed.notified()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Self(Slots(places)) = self;
        places.free.fetch_add(1, Relaxed);
        places.freed.notify_waiters();
    }
}
