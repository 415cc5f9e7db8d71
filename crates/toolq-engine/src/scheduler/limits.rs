//! What limits how many calls run and when they start. First, permits for calls that run at the same time, shared by a turn and the turns of all agents in it. The gates decide
//! the order of calls; permits only limit how many run.
//!
//! An agent waits for its own calls, so it must never hold a permit that one of them needs. To ensure that, agents take
//! permits of their level of nesting only, and all other calls share one limit. A call that holds a permit waits at
//! most for permits of deeper levels, so some call can always continue.

use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use toolq_core::schedule::{AppliedLimits, StartLimiter, StartTicket, StartWait};

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

    /// Waits for a permit, in line with others.
    pub(crate) async fn acquire(&self) -> Option<Permit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
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
            let awaited = limit.clone();
            self.0.push(AwaitedPermit {
                limit: limit.clone(),
                acquire: Box::pin(async move { awaited.acquire().await }),
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
        let open_files = getrlimit(Resource::Nofile).current;
        let [calls, max_agents] = descriptor_limits(jobs, open_files);
        Self {
            calls: ConcurrencyLimit::new(calls),
            max_agents,
            agents_by_depth: Arc::default(),
        }
    }

    /// Returns the limit for agents that are nested in `depth` other agents.
    pub(crate) fn agents_at_depth(&self, depth: usize) -> ConcurrencyLimit {
        let mut limits = self.agents_by_depth.lock();
        while limits.len() <= depth {
            limits.push(ConcurrencyLimit::new(self.max_agents));
        }
        limits[depth].clone()
    }
}

// Limits on concurrent calls that follow from the limit on open files, regardless of `-j`. Without them, many parallel
// calls would use up the descriptors that the session log needs.

/// Descriptors that are left for everything except calls.
const RESERVED_DESCRIPTORS: u64 = 64;
/// Descriptors that a running command needs: its pipes on both sides, the socket of its reaper, and a file for its
/// output. Requests need fewer.
const DESCRIPTORS_PER_CALL: u64 = 8;
/// Levels of nested agents that share the descriptors for agents.
const AGENT_LEVELS: u64 = 4;

/// Returns how many of `jobs` calls may run at once in a process with so many open files: other than those of agents, and of agents on
/// each level of nesting. An agent has one request in flight. Three quarters of the descriptors are for calls, one quarter for agents.
/// `None` is no limit on open files.
fn descriptor_limits(jobs: NonZeroUsize, open_files: Option<u64>) -> [NonZeroUsize; 2] {
    let available = open_files
        .unwrap_or(u64::MAX)
        .saturating_sub(RESERVED_DESCRIPTORS);
    let maximums = [
        available / 4 * 3 / DESCRIPTORS_PER_CALL,
        available / 4 / AGENT_LEVELS,
    ];
    maximums.map(|maximum| {
        let maximum = usize::try_from(maximum).unwrap_or(usize::MAX);
        jobs.min(NonZeroUsize::new(maximum).unwrap_or(NonZeroUsize::MIN))
    })
}

// The limits of tools, servers and hosts on when calls start, shared by a turn, the turns of all agents in it, and the
// turns that run at the same time.

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
        self.0.limiter.lock().enqueue(limits, is_retry)
    }

    /// See [`StartLimiter::check`].
    pub(crate) fn check(&self, ticket: &StartTicket, now: Duration) -> Result<(), StartWait> {
        self.0.limiter.lock().check(ticket, now)
    }

    /// Starts a call that its limits let start.
    pub(crate) fn start(&self, ticket: StartTicket, now: Duration, waited: bool) -> StartSlot {
        self.0.limiter.lock().start(&ticket, now, waited);
        self.0.changed.send_replace(());
        StartSlot {
            limiter: self.clone(),
            ticket,
        }
    }

    /// Starts another attempt of a call that runs.
    pub(crate) fn start_retry(&self, ticket: &StartTicket, now: Duration, waited: bool) {
        self.0.limiter.lock().start(ticket, now, waited);
        self.0.changed.send_replace(());
    }

    /// Takes a call that won't start out of its line.
    pub(crate) fn withdraw(&self, ticket: &StartTicket) {
        self.0.limiter.lock().withdraw(ticket);
        self.0.changed.send_replace(());
    }

    /// Returns what notices when a call starts, ends or is withdrawn from now on, also while nobody waits for that.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }
}

impl StartSlot {
    /// Records when an attempt of the call has really started, which is after its start was recorded.
    pub(crate) fn note_started(&self, now: Duration) {
        self.limiter
            .0
            .limiter
            .lock()
            .note_started(&self.ticket, now);
    }
}

impl Drop for StartSlot {
    fn drop(&mut self) {
        self.limiter.0.limiter.lock().finish(&self.ticket);
        self.limiter.0.changed.send_replace(());
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

    fn limits(jobs: usize, open_files: Option<u64>) -> (usize, usize) {
        let [calls, agents] = descriptor_limits(jobs.try_into().unwrap(), open_files);
        (calls.get(), agents.get())
    }

    #[test]
    fn usual_numbers_of_jobs_are_not_limited() {
        assert_eq!(limits(10, Some(1024)), (10, 10));
        assert_eq!(limits(1000, Some(1 << 20)), (1000, 1000));
        assert_eq!(limits(100_000, None), (100_000, 100_000));
    }

    #[test]
    fn calls_and_agents_leave_descriptors_for_the_log() {
        assert_eq!(limits(1500, Some(1024)), (90, 60));
        for open_files in 0..5000 {
            let (calls, agents) = limits(10_000, Some(open_files));
            let used = calls as u64 * DESCRIPTORS_PER_CALL + agents as u64 * AGENT_LEVELS;
            assert!(calls >= 1 && agents >= 1);
            assert!(
                open_files < 100 || used + RESERVED_DESCRIPTORS <= open_files,
                "{open_files}"
            );
        }
    }
}
