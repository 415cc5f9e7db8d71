//! The scheduling rules, as plain state machines: permits, retries, circuit breakers, timeouts. The order of calls and
//! the limits on their starts are in `toolq_core::schedule`.

#[cfg(test)]
mod retry_tests;

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::reach::Reach;
use toolq_core::schedule::{AppliedLimits, StartLimiter, StartTicket, StartWait};
use toolq_core::types::{CallEnding, Outcome, RetryCondition, RetryPolicy, Tool, TransportPhase};

// `pause_after_failures`: counts the consecutive failures of each tool, in call order and across turns.
//
// Calls end in any order, but the count must not depend on which one was faster. So the outcome of a call counts only
// when all earlier calls of the same tool have ended, too.

/// The failure streaks of all tools that have a limit. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct CircuitBreakers {
    /// Turns that share them are driven by one task, so the lock is never contended.
    streaks: Arc<Mutex<HashMap<String, FailureStreak>>>,
    /// The limit of tools that don't declare one. 0 means that they are never paused.
    default_limit: u32,
}

/// The position of a call among the calls of its tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(usize);

/// What the outcome of a call says about its tool.
#[derive(Debug, Clone, Copy)]
enum Observation {
    Success,
    Failure,
    /// Not the tool's doing: the call was stopped from outside or never started.
    Neutral,
}

#[derive(Debug, Default)]
struct FailureStreak {
    /// The position of the first call in `pending`.
    first_pending: usize,
    /// The calls that haven't been counted, starting with the first one that hasn't ended.
    pending: VecDeque<Option<Observation>>,
    failures: u32,
    is_paused: bool,
}

impl CircuitBreakers {
    /// Returns circuit breakers for the tools of an agent, which pause after three failures unless they declare a
    /// limit.
    pub(crate) fn for_agent() -> Self {
        Self {
            default_limit: 3,
            ..Self::default()
        }
    }

    fn limit(&self, tool: &Tool) -> u32 {
        tool.pause_after_failures.unwrap_or(self.default_limit)
    }

    /// Lets all tools run again: their definitions were read anew.
    pub(crate) fn reset(&self) {
        for streak in self.streaks.lock().values_mut() {
            streak.failures = 0;
            streak.is_paused = false;
        }
    }

    /// Takes the ticket for the next call of `tool`. `None` if the tool is never paused.
    pub(crate) fn take_ticket(&self, tool: &Tool) -> Option<Ticket> {
        if self.limit(tool) == 0 {
            return None;
        }
        let mut streaks = self.streaks.lock();
        let streak = streaks.entry(tool.name.clone()).or_default();
        streak.pending.push_back(None);
        Some(Ticket(streak.first_pending + streak.pending.len() - 1))
    }

    /// Returns how many consecutive failures paused `tool`. `None` if it isn't paused. A paused tool stays paused.
    pub(crate) fn paused_after(&self, tool: &Tool) -> Option<u32> {
        let streaks = self.streaks.lock();
        let streak = streaks.get(&tool.name)?;
        streak.is_paused.then_some(streak.failures)
    }

    /// Records the outcome of the call with this ticket.
    pub(crate) fn record_outcome(&self, tool: &Tool, ticket: Option<Ticket>, outcome: &Outcome) {
        let limit = self.limit(tool);
        let mut streaks = self.streaks.lock();
        let (Some(ticket), Some(streak)) = (ticket, streaks.get_mut(&tool.name)) else {
            return;
        };
        if let Some(observation) = streak.pending.get_mut(ticket.0 - streak.first_pending) {
            *observation = Some(Observation::from_outcome(outcome));
        }
        streak.count_finished(limit);
    }
}

impl FailureStreak {
    /// Counts the calls that have ended, up to the first one that hasn't.
    fn count_finished(&mut self, limit: u32) {
        while let Some(Some(observation)) = self.pending.front().copied() {
            self.pending.pop_front();
            self.first_pending += 1;
            match observation {
                _ if self.is_paused => {}
                Observation::Success => self.failures = 0,
                Observation::Failure => self.failures += 1,
                Observation::Neutral => {}
            }
            self.is_paused = self.failures >= limit;
        }
    }
}

impl Observation {
    fn from_outcome(outcome: &Outcome) -> Self {
        if !outcome.is_error() {
            Self::Success
        } else if outcome.is_skipped() || outcome.is_stopped_externally() {
            Self::Neutral
        } else {
            Self::Failure
        }
    }
}

// Permits for calls that run at the same time, shared by a turn and the turns of all agents in it. The gates decide the
// order of calls; permits only limit how many run.
//
// An agent waits for its own calls, so it must never hold a permit that one of them needs. To ensure that, agents take
// permits of their level of nesting only, and all other calls share one limit. A call that holds a permit waits at
// most for permits of deeper levels, so some call can always continue.

/// A permit to run one call. Dropping it releases it.
pub(crate) type Permit = OwnedSemaphorePermit;

/// Returns a limit on how many calls run at once.
pub(crate) fn call_limit(jobs: NonZeroUsize) -> Arc<Semaphore> {
    let permits = jobs.get().min(Semaphore::MAX_PERMITS);
    Arc::new(Semaphore::new(permits))
}

/// The permits that a turn waits for. It stays in line for a permit while it does other things, so it can't miss that one was
/// released.
#[derive(Default)]
pub(crate) struct AwaitedPermits(Vec<AwaitedPermit>);

struct AwaitedPermit {
    limit: Arc<Semaphore>,
    acquire: Pin<Box<dyn Future<Output = Option<Permit>> + Send>>,
    granted: Option<Permit>,
    /// A call asked for it since [`AwaitedPermits::begin_round`].
    is_wanted: bool,
}

impl AwaitedPermits {
    /// Takes a permit of `limit`, if there is one. Otherwise the turn waits for it from now on.
    pub(crate) fn take(&mut self, limit: &Arc<Semaphore>) -> Option<Permit> {
        let is_same = |awaited: &AwaitedPermit| Arc::ptr_eq(&awaited.limit, limit);
        if let Some(index) = self.0.iter().position(is_same) {
            let awaited = &mut self.0[index];
            awaited.is_wanted = true;
            let permit = awaited.granted.take()?;
            self.0.remove(index);
            return Some(permit);
        }
        let permit = Arc::clone(limit).try_acquire_owned().ok();
        if permit.is_none() {
            let acquire = Arc::clone(limit).acquire_owned();
            self.0.push(AwaitedPermit {
                limit: Arc::clone(limit),
                acquire: Box::pin(async { acquire.await.ok() }),
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
    pub(crate) calls: Arc<Semaphore>,
    max_agents: NonZeroUsize,
    agents_by_depth: Arc<Mutex<Vec<Arc<Semaphore>>>>,
}

impl CallLimits {
    /// Creates the limits for `jobs` calls at once, or for as many as this process has descriptors for.
    pub(crate) fn new(jobs: NonZeroUsize) -> Self {
        let open_files = getrlimit(Resource::Nofile).current;
        let [calls, max_agents] = descriptor_limits(jobs, open_files);
        Self {
            calls: call_limit(calls),
            max_agents,
            agents_by_depth: Arc::default(),
        }
    }

    /// Returns the limit for agents that are nested in `depth` other agents.
    pub(crate) fn agents_at_depth(&self, depth: usize) -> Arc<Semaphore> {
        let mut limits = self.agents_by_depth.lock();
        while limits.len() <= depth {
            limits.push(call_limit(self.max_agents));
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

// Decides whether a failed attempt is retried, and after how long. Pure: times and random seeds are passed in.

/// The share of the remaining `timeout.total` that a wait may take, so that the next attempt has some time left.
const MAX_WAIT_SHARE: f64 = 0.9;

/// Spawn errors that mean "not now" rather than "never".
const TEMPORARY_SPAWN_ERRNOS: [Errno; 5] = [
    Errno::AGAIN,
    Errno::NOMEM,
    Errno::MFILE,
    Errno::NFILE,
    Errno::TXTBSY,
];

/// Returns the seed of the jitter in the waits of a call, which is the same on every run.
pub(crate) fn jitter_seed(idempotency_key: &str) -> u64 {
    let digits = idempotency_key.get(..16).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or_default()
}

/// Returns the wait before the attempt that follows `attempt` (counted from 1). `None` if there is no retry.
///
/// `retry_after` is the server's minimum, `remaining` is what is left of `timeout.total`, and `seed` determines the
/// jitter.
pub(crate) fn next_wait(
    tool: &Tool,
    attempt: u32,
    outcome: &Outcome,
    retry_after: Option<Duration>,
    remaining: Option<Duration>,
    seed: u64,
) -> Option<Duration> {
    if attempt > tool.retry.max_retries
        || !may_repeat(tool, outcome)
        || remaining.is_some_and(|remaining| remaining.is_zero())
    {
        return None;
    }
    let backoff = BackoffSequence::new(&tool.retry, seed).nth(attempt as usize - 1)?;
    Some(clamp_wait(
        backoff,
        retry_after,
        remaining,
        tool.retry.max_backoff,
    ))
}

/// Returns the wait before an agent repeats a model request that failed for `reason`. `None` if it doesn't.
///
/// Such a request has no effect but its response, so it may always be repeated. A `retry_after` that exceeds the
/// remaining time isn't clipped: the API would only refuse an earlier request.
pub(crate) fn next_request_wait(
    policy: &RetryPolicy,
    attempt: u32,
    reason: RetryCondition,
    retry_after: Option<Duration>,
    remaining: Duration,
    seed: u64,
) -> Option<Duration> {
    let min_wait = retry_after.unwrap_or_default();
    if attempt > policy.max_retries || !policy.conditions.contains(&reason) || min_wait >= remaining
    {
        return None;
    }
    let backoff = BackoffSequence::new(policy, seed).nth(attempt as usize - 1)?;
    Some(clamp_wait(backoff, None, Some(remaining), policy.max_backoff).max(min_wait))
}

/// Combines the policy's backoff with the server's minimum, within the remaining time. If the tool has no
/// `timeout.total`, no wait is longer than `max_wait`.
fn clamp_wait(
    backoff: Duration,
    retry_after: Option<Duration>,
    remaining: Option<Duration>,
    max_wait: Duration,
) -> Duration {
    let limit = remaining.map_or(max_wait, |remaining| remaining.mul_f64(MAX_WAIT_SHARE));
    backoff.max(retry_after.unwrap_or_default()).min(limit)
}

/// Returns whether the policy of `tool` retries this outcome. A tool that writes never repeats an attempt that may have
/// had an effect.
fn may_repeat(tool: &Tool, outcome: &Outcome) -> bool {
    Reach::of_outcome(tool.effect, outcome) != Reach::MaybeDone
        && tool
            .retry
            .conditions
            .iter()
            .any(|on| matches_condition(*on, outcome))
}

fn matches_condition(on: RetryCondition, outcome: &Outcome) -> bool {
    let ending = match outcome {
        Outcome::Failed { ending, .. } => Some(*ending),
        _ => None,
    };
    let status = ending.and_then(CallEnding::http_status);
    match on {
        RetryCondition::RateLimited => status == Some(429) || is_temporary_spawn_error(outcome),
        RetryCondition::Unavailable => {
            matches!(status, Some(502..=504 | 529)) || is_unreachable(outcome)
        }
        RetryCondition::Timeout => matches!(outcome, Outcome::TimedOut { .. }),
        RetryCondition::Exit(code) => ending == Some(CallEnding::ExitCode(code)),
        RetryCondition::Http(wanted) => status == Some(wanted),
    }
}

fn is_temporary_spawn_error(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotStarted(fault)
        if TEMPORARY_SPAWN_ERRNOS.iter().any(|errno| errno.raw_os_error() == fault.errno))
}

fn is_unreachable(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::NotStarted(_) => true,
        Outcome::TransportFailed(transport) => matches!(
            transport.phase,
            TransportPhase::Connect | TransportPhase::Response | TransportPhase::Body
        ),
        _ => false,
    }
}

/// The waits of a policy. They double from `backoff` up to `max_backoff`, and jitter reduces each to between half and
/// all of that, so that calls that failed together aren't retried together.
#[derive(Debug)]
struct BackoffSequence {
    next_wait: Duration,
    max_wait: Duration,
    rng: fastrand::Rng,
}

impl BackoffSequence {
    fn new(policy: &RetryPolicy, seed: u64) -> Self {
        Self {
            next_wait: policy.initial_backoff.min(policy.max_backoff),
            max_wait: policy.max_backoff,
            rng: fastrand::Rng::with_seed(seed),
        }
    }
}

impl Iterator for BackoffSequence {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = self.next_wait;
        self.next_wait = wait.saturating_mul(2).min(self.max_wait);
        Some(wait.mul_f64(0.5 + self.rng.f64() / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::NotExecutedCause;
    use toolq_testing::{sample_tool, success_outcome};

    fn tool(pause_after_failures: Option<u32>) -> Tool {
        Tool {
            pause_after_failures,
            ..sample_tool("t")
        }
    }

    fn failure() -> Outcome {
        Outcome::NoBacking
    }

    /// Records one call after the other, and returns after how many failures the tool is paused.
    fn pause_after(breakers: &CircuitBreakers, tool: &Tool, outcomes: &[Outcome]) -> Option<u32> {
        for outcome in outcomes {
            let ticket = breakers.take_ticket(tool);
            breakers.record_outcome(tool, ticket, outcome);
        }
        breakers.paused_after(tool)
    }

    #[test]
    fn only_failures_in_a_row_pause_a_tool() {
        let success = || success_outcome("done");
        let skipped = || {
            Outcome::NotExecuted(NotExecutedCause::PrecedingFailed {
                tool: "other".to_owned(),
            })
        };
        let two = tool(Some(2));
        for (outcomes, paused) in [
            (vec![failure()], None),
            (vec![failure(), skipped()], None),
            (vec![failure(), failure()], Some(2)),
            (vec![failure(), success(), failure()], None),
            (vec![failure(), skipped(), failure()], Some(2)),
            (vec![failure(), failure(), success(), failure()], Some(2)),
        ] {
            let paused_after = pause_after(&CircuitBreakers::default(), &two, &outcomes);
            assert_eq!(paused_after, paused, "{outcomes:?}");
        }
    }

    /// Which call was faster makes no difference.
    #[test]
    fn outcomes_count_in_call_order() {
        let two = tool(Some(2));
        let breakers = CircuitBreakers::default();
        assert_eq!(pause_after(&breakers, &two, &[failure()]), None);
        let [first, second, third] = [(); 3].map(|()| breakers.take_ticket(&two));
        breakers.record_outcome(&two, third, &failure());
        breakers.record_outcome(&two, second, &failure());
        assert_eq!(breakers.paused_after(&two), None);
        breakers.record_outcome(&two, first, &success_outcome("done"));
        assert_eq!(breakers.paused_after(&two), Some(2));

        let breakers = CircuitBreakers::default();
        let [first, second] = [(); 2].map(|()| breakers.take_ticket(&two));
        breakers.record_outcome(&two, first, &failure());
        breakers.record_outcome(&two, second, &failure());
        assert_eq!(breakers.paused_after(&two), Some(2));
    }

    #[test]
    fn tools_of_an_agent_have_a_limit_unless_they_declare_one() {
        let failures = [(); 4].map(|()| failure());
        let limits = [None, Some(0), Some(1), Some(4)];
        let of_agent =
            limits.map(|limit| pause_after(&CircuitBreakers::for_agent(), &tool(limit), &failures));
        assert_eq!(of_agent, [Some(3), None, Some(1), Some(4)]);
        let of_input =
            limits.map(|limit| pause_after(&CircuitBreakers::default(), &tool(limit), &failures));
        assert_eq!(of_input, [None, None, Some(1), Some(4)]);
        assert!(
            CircuitBreakers::default()
                .take_ticket(&tool(None))
                .is_none()
        );
    }
}

#[cfg(test)]
mod limits_tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// A permit may be released before the turn is polled that waits for it: an inner turn of the same task is polled first.
    #[tokio::test]
    async fn a_permit_that_is_released_before_the_first_poll_is_granted() {
        let limit = call_limit(NonZeroUsize::MIN);
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
        let limit = call_limit(NonZeroUsize::MIN);
        let held = limit.try_acquire();
        let mut awaited = AwaitedPermits::default();
        assert!(awaited.take(&limit).is_none());
        assert!(awaited.granted().now_or_never().is_none());
        drop(held);
        awaited.granted().now_or_never().unwrap();
        assert!(limit.try_acquire().is_err());
        awaited.begin_round();
        awaited.end_round();
        assert!(limit.try_acquire().is_ok());
    }

    /// An agent may hold a permit while it waits for one of another level.
    #[test]
    fn agents_of_another_depth_and_calls_have_permits_of_their_own() {
        let limits = CallLimits::new(NonZeroUsize::MIN);
        let agent = limits.agents_at_depth(1).try_acquire_owned();
        assert!(agent.is_ok());
        assert!(limits.agents_at_depth(1).try_acquire_owned().is_err());
        assert!(limits.agents_at_depth(0).try_acquire_owned().is_ok());
        assert!(limits.agents_at_depth(2).try_acquire_owned().is_ok());
        assert!(limits.calls.try_acquire().is_ok());
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
