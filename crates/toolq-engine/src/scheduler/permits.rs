//! Permits for calls that run at the same time, shared by a turn and the turns of all agents in it. The gates decide
//! the order of calls; permits only limit how many run.
//!
//! An agent waits for its own calls, so it must never hold a permit that one of them needs. To ensure that, agents take
//! permits of their level of nesting only, and all other calls share one limit. A call that holds a permit waits at
//! most for permits of deeper levels, so some call can always continue.

use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::scheduler::descriptor_limits::DescriptorLimits;

/// A limit on how many calls run at once. Clones share its permits.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit(Arc<Semaphore>);

/// A permit to run one call. Dropping it releases it.
pub type Permit = OwnedSemaphorePermit;

impl ConcurrencyLimit {
    /// Creates a limit of `jobs` calls.
    pub fn new(jobs: NonZeroUsize) -> Self {
        let permits = jobs.get().min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(permits)))
    }

    /// Takes a permit, if one is free.
    pub fn try_acquire(&self) -> Option<Permit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}

/// The permits that a turn waits for. It stays in line for a permit while it does other things, so it can't miss that one was
/// released.
#[derive(Default)]
pub(crate) struct AwaitedPermits(Vec<AwaitedPermit>);

struct AwaitedPermit {
    limit: ConcurrencyLimit,
    acquire: Pin<Box<dyn Future<Output = Option<Permit>> + Send>>,
    granted: Option<Permit>,
    /// A call asked for it since [`AwaitedPermits::begin_round`].
    is_wanted: bool,
}

impl AwaitedPermits {
    /// Takes a permit of `limit`, if there is one. Otherwise the turn waits for it from now on.
    pub(crate) fn take(&mut self, limit: &ConcurrencyLimit) -> Option<Permit> {
        let is_same = |awaited: &AwaitedPermit| Arc::ptr_eq(&awaited.limit.0, &limit.0);
        if let Some(index) = self.0.iter().position(is_same) {
            let awaited = &mut self.0[index];
            awaited.is_wanted = true;
            let permit = awaited.granted.take()?;
            self.0.remove(index);
            return Some(permit);
        }
        let permit = limit.try_acquire();
        if permit.is_none() {
            let semaphore = Arc::clone(&limit.0);
            self.0.push(AwaitedPermit {
                limit: limit.clone(),
                acquire: Box::pin(async move { semaphore.acquire_owned().await.ok() }),
                granted: None,
                is_wanted: true,
            });
        }
        permit
    }

    /// Returns whether the turn waits for a permit.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.0.is_empty()
    }

    /// From now on, calls ask again for the permits that they need.
    pub(crate) fn begin_round(&mut self) {
        for awaited in &mut self.0 {
            awaited.is_wanted = false;
        }
    }

    /// Gives up the permits that no call has asked for in this round.
    pub(crate) fn end_round(&mut self) {
        self.0.retain(|awaited| awaited.is_wanted);
    }

    /// Resolves when a permit is granted. Never resolves if the turn waits for none.
    pub(crate) async fn granted(&mut self) {
        poll_fn(|context| {
            for awaited in &mut self.0 {
                if awaited.granted.is_some() {
                    return Poll::Ready(());
                }
                if let Poll::Ready(permit) = awaited.acquire.as_mut().poll(context) {
                    awaited.granted = permit;
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
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
    use futures_util::FutureExt as _;

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

    /// A permit may be released before the turn is polled that waits for it: an inner turn of the same task is polled first.
    #[tokio::test]
    async fn a_permit_that_is_released_before_the_first_poll_is_granted() {
        let limit = ConcurrencyLimit::new(NonZeroUsize::MIN);
        let held = limit.try_acquire();
        let mut awaited = AwaitedPermits::default();
        assert!(awaited.take(&limit).is_none());
        drop(held);
        awaited.granted().now_or_never().unwrap();
        awaited.begin_round();
        assert!(awaited.take(&limit).is_some());
        awaited.end_round();
        assert!(!awaited.is_waiting());
    }

    #[tokio::test]
    async fn a_permit_that_no_call_wants_any_more_is_given_up() {
        let limit = ConcurrencyLimit::new(NonZeroUsize::MIN);
        let held = limit.try_acquire();
        let mut awaited = AwaitedPermits::default();
        assert!(awaited.take(&limit).is_none());
        assert!(awaited.granted().now_or_never().is_none());
        drop(held);
        awaited.granted().now_or_never().unwrap();
        assert!(limit.try_acquire().is_none());
        awaited.begin_round();
        awaited.end_round();
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
