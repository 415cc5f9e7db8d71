//! Stops, kills, pauses and resumes a run, at any moment and from any thread.
//!
//! Stopping and killing are only recorded here; the dispatcher and the attempts act on them. Pausing takes effect at
//! once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::clock::PausableClock;
use crate::timing::KILL_DEADLINE;
use toolq_core::types::HaltCause;

/// A handle that stops, kills, pauses and resumes the run of an engine. Clones control the same run.
#[derive(Clone)]
pub struct RunControl {
    state: Arc<watch::Sender<ControlState>>,
    /// The scopes that contain what it controls, outermost first. Empty for the whole run.
    scope_ids: Arc<[u64]>,
    clock: PausableClock,
    backends: Arc<dyn Suspendable>,
}

/// Suspends and resumes everything that runs, like a shell's job control. These are direct calls rather than messages,
/// since a suspend has to reach all programs at the same time.
pub(crate) trait Suspendable: Send + Sync {
    /// Suspends everything that runs, until [`Self::resume`].
    fn suspend(&self) {}

    /// Resumes everything that was suspended.
    fn resume(&self) {}
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
    pub(crate) fn new(backends: Arc<dyn Suspendable>) -> Self {
        Self {
            state: Arc::default(),
            scope_ids: Arc::default(),
            clock: PausableClock::start(),
            backends,
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
        self.backends.suspend();
    }

    /// Resumes what [`pause`](Self::pause) suspended.
    pub fn resume(&self) {
        self.backends.resume();
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
