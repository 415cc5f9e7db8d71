//! Stops, kills, pauses and resumes a run, at any moment and from any thread.
//!
//! Stopping and killing are only recorded here; the turns and the attempts act on them. Pausing takes effect at
//! once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use toolq_core::types::HaltCause;

use crate::timing::KILL_DEADLINE;
use procfence::{ReaperClient, ReaperRequest};

/// A handle that stops, kills, pauses and resumes the run of an engine. Clones control the same run.
#[derive(Clone)]
pub struct RunControl {
    state: Arc<watch::Sender<ControlState>>,
    /// The scopes that contain what it controls, outermost first. Empty for the whole run.
    scope_ids: Arc<[u64]>,
    clock: PausableClock,
    /// The programs that run. Requests aren't suspended, since the server wouldn't wait. Only their timeouts pause, with the clock.
    pub(crate) groups: ProcessGroups,
}

/// What has been requested so far.
#[derive(Debug, Default)]
struct ControlState {
    phase: RunPhase,
    /// Scopes that were halted, and why. Their calls are stopped.
    halted_scopes: Vec<(u64, HaltCause)>,
    next_scope_id: u64,
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum RunPhase {
    #[default]
    Running,
    /// Nothing new starts, and running calls are terminated gracefully.
    Stopping(HaltCause),
    /// Running calls are killed.
    Killing(HaltCause),
}

impl RunPhase {
    fn halt_cause(self) -> Option<HaltCause> {
        match self {
            Self::Running => None,
            Self::Stopping(cause) | Self::Killing(cause) => Some(cause),
        }
    }
}

impl RunControl {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            scope_ids: Arc::default(),
            clock: PausableClock::start(),
            groups: ProcessGroups::default(),
        }
    }

    /// Stops the run: nothing new starts, in this turn and in later ones, and running calls are terminated as at a
    /// timeout. Every call still gets a result. Only the first cause counts.
    pub fn halt(&self, cause: HaltCause) {
        self.state.send_if_modified(|state| {
            let is_running = state.phase == RunPhase::Running;
            if is_running {
                state.phase = RunPhase::Stopping(cause);
            }
            is_running
        });
    }

    /// Kills the calls that [`halt`](Self::halt) is terminating. Without a halt, this does nothing.
    pub fn kill(&self) {
        self.state.send_if_modified(|state| {
            let RunPhase::Stopping(cause) = state.phase else {
                return false;
            };
            state.phase = RunPhase::Killing(cause);
            true
        });
    }

    /// Returns why the run, or the scope that this handle controls, is being stopped. `None` if it isn't.
    pub fn halt_cause(&self) -> Option<HaltCause> {
        self.halt_cause_in(&self.state.borrow())
    }

    fn halt_cause_in(&self, state: &ControlState) -> Option<HaltCause> {
        let halted = || {
            let mut halted = state.halted_scopes.iter();
            let halted = halted.find(|(scope, _)| self.scope_ids.contains(scope));
            halted.map(|(_, cause)| *cause)
        };
        state.phase.halt_cause().or_else(halted)
    }

    /// Returns a control for one more scope: the calls of an agent, or one of several turns that run at the same time.
    /// Halting the run, or a scope that contains this one, halts them too.
    pub(crate) fn for_scope(&self) -> Self {
        let mut scope_id = 0;
        self.state.send_if_modified(|state| {
            scope_id = state.next_scope_id;
            state.next_scope_id += 1;
            false
        });
        let scope_ids = self.scope_ids.iter().copied().chain([scope_id]);
        Self {
            scope_ids: scope_ids.collect(),
            ..self.clone()
        }
    }

    /// Halts the calls of the scope that this handle controls, as [`halt`](Self::halt) does for a run.
    pub(crate) fn halt_scope(&self, cause: HaltCause) {
        if let Some(scope_id) = self.scope_ids.last() {
            self.state
                .send_modify(|state| state.halted_scopes.push((*scope_id, cause)));
        }
    }

    /// Forgets the scope that this handle controls. Nothing of it may be left.
    pub(crate) fn forget_scope(&self) {
        self.state.send_if_modified(|state| {
            state
                .halted_scopes
                .retain(|(scope, _)| self.scope_ids.last() != Some(scope));
            false
        });
    }

    /// Suspends all running programs, and the clock that measures timeouts and time budgets.
    pub fn pause(&self) {
        self.clock.pause();
        self.groups.suspend();
    }

    /// Resumes what [`pause`](Self::pause) suspended.
    pub fn resume(&self) {
        self.groups.resume();
        self.clock.resume();
    }

    /// Returns the time since the engine was created, not counting pauses.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Sleeps for `duration`, not counting pauses.
    pub(crate) fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + '_ {
        self.clock.sleep(duration)
    }

    /// Waits until the run, or the scope that this handle controls, must stop.
    pub async fn wait_for_halt(&self) {
        self.wait_until(|state| self.halt_cause_in(state).is_some())
            .await;
    }

    /// Waits until the run halts for a reason other than its budgets. An exhausted budget starts nothing more, but the
    /// calls that still arrive are answered.
    pub async fn wait_for_external_halt(&self) {
        self.wait_for_halt().await;
        if let Some(HaltCause::OverBudget(_)) = self.halt_cause() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until running calls must be killed.
    pub(crate) fn wait_for_kill(&self) -> impl Future<Output = ()> + Send + '_ {
        self.wait_until(|state| matches!(state.phase, RunPhase::Killing(_)))
    }

    /// Waits until a killed attempt has had its time to return.
    pub(crate) async fn wait_for_kill_deadline(&self) {
        self.wait_for_kill().await;
        sleep(KILL_DEADLINE).await;
    }

    async fn wait_until(&self, condition: impl Fn(&ControlState) -> bool) {
        // `self` holds the sender, so waiting can't fail.
        let _ = self.state.subscribe().wait_for(condition).await;
    }
}

// The process groups of all running programs, so that they can be suspended and resumed together.

/// The groups of running programs. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessGroups(Arc<Mutex<GroupRegistry>>);

#[derive(Debug, Default)]
struct GroupRegistry {
    handles: HashMap<u64, GroupHandle>,
    /// How many groups have been registered so far.
    registered: u64,
    suspended: bool,
}

/// How to signal a group.
#[derive(Debug)]
pub(crate) enum GroupHandle {
    /// Signal the group of this process directly.
    Direct(Pid),
    /// Let its reaper signal it.
    #[cfg(target_os = "linux")]
    Supervised(Arc<ReaperClient>),
}

/// The registration of a group, which ends when it is dropped. Drop it before reaping the group's leader, or a signal
/// may hit an unrelated process that reuses its pid.
#[derive(Debug)]
pub(crate) struct Registration {
    groups: ProcessGroups,
    number: u64,
}

impl ProcessGroups {
    /// Registers a group. It is stopped at once if all groups are suspended.
    pub(crate) fn register(&self, handle: GroupHandle) -> Registration {
        let mut state = self.0.lock();
        if state.suspended {
            handle.send_signal(Signal::STOP);
        }
        state.registered += 1;
        let number = state.registered;
        state.handles.insert(number, handle);
        drop(state);
        let groups = self.clone();
        Registration { groups, number }
    }

    /// Stops all groups, including those registered later, until [`Self::resume`].
    pub(crate) fn suspend(&self) {
        self.set_suspended(true, Signal::STOP);
    }

    /// Resumes all groups.
    pub(crate) fn resume(&self) {
        self.set_suspended(false, Signal::CONT);
    }

    fn set_suspended(&self, suspended: bool, signal: Signal) {
        let mut state = self.0.lock();
        state.suspended = suspended;
        state
            .handles
            .values()
            .for_each(|handle| handle.send_signal(signal));
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.groups.0.lock().handles.remove(&self.number);
    }
}

impl GroupHandle {
    /// Sends a signal. It isn't an error if no process is left to receive it.
    fn send_signal(&self, signal: Signal) {
        match self {
            Self::Direct(pid) => drop(kill_process_group(*pid, signal)),
            #[cfg(target_os = "linux")]
            Self::Supervised(reaper) => reaper.try_send(&ReaperRequest::Signal(signal.as_raw())),
        }
    }
}

// A clock that pauses while toolq is suspended, so that no timeout expires in the meantime.

/// A clock that can be paused. Clones show the same time.
#[derive(Debug, Clone)]
struct PausableClock {
    started_at: Instant,
    state: Arc<watch::Sender<ClockState>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ClockState {
    /// The total length of all finished pauses.
    total_paused: Duration,
    /// When the current pause began.
    paused_since: Option<Instant>,
}

impl PausableClock {
    /// Returns a clock that starts now.
    pub(crate) fn start() -> Self {
        Self {
            started_at: Instant::now(),
            state: Arc::default(),
        }
    }

    /// Returns the time since the start, not counting pauses.
    pub(crate) fn now(&self) -> Duration {
        let ClockState {
            total_paused,
            paused_since,
        } = *self.state.borrow();
        let now = paused_since.unwrap_or_else(Instant::now);
        now.duration_since(self.started_at)
            .saturating_sub(total_paused)
    }

    pub(crate) fn pause(&self) {
        self.state.send_modify(|state| {
            state.paused_since = state.paused_since.or_else(|| Some(Instant::now()));
        });
    }

    fn resume(&self) {
        self.state.send_modify(|state| {
            let paused_since = state.paused_since.take();
            state.total_paused += paused_since.map_or(Duration::ZERO, |since| since.elapsed());
        });
    }

    /// Sleeps for `duration` of this clock's time.
    ///
    /// A system timer that fires after a pause may be early by the length of that pause, so the remaining time is
    /// checked again before this returns.
    pub(crate) async fn sleep(&self, duration: Duration) {
        let deadline = self.now().saturating_add(duration);
        let mut state = self.state.subscribe();
        loop {
            let is_running = state.borrow_and_update().paused_since.is_none();
            let remaining = deadline.saturating_sub(self.now());
            if remaining.is_zero() {
                return;
            }
            tokio::select! {
                () = sleep(remaining), if is_running => {}
                // `self` holds the sender, so this is always a change, never an error.
                _ = state.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Time spent in pauses doesn't wake a sleeper early.
    #[tokio::test(start_paused = true)]
    async fn pauses_do_not_count() {
        let clock = PausableClock::start();
        let started_at = Instant::now();
        let sleeper = clock.clone();
        let sleeping = tokio::spawn(async move { sleeper.sleep(10 * SECOND).await });
        sleep(4 * SECOND).await;
        for pause in [3, 3600] {
            clock.pause();
            let then = clock.now();
            sleep(pause * SECOND).await;
            assert_eq!(clock.now(), then);
            clock.resume();
        }
        assert!(!sleeping.is_finished());
        sleeping.await.unwrap();
        assert_eq!(started_at.elapsed(), 3613 * SECOND);
        assert_eq!(clock.now(), 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_begun_in_a_pause_waits_for_its_end() {
        let clock = PausableClock::start();
        clock.pause();
        clock.pause();
        let sleeper = async {
            clock.sleep(SECOND).await;
            clock.now()
        };
        let resumer = async {
            sleep(60 * SECOND).await;
            clock.resume();
            clock.resume();
        };
        assert_eq!(tokio::join!(sleeper, resumer).0, SECOND);
    }
}
