//! The reins of a run: who holds them ends it, stops it and lets it go on, at any moment, from anywhere.
//!
//! It only keeps what was said. What that means for each call, the dispatcher and the attempts decide.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Stopwatch;
use toolq_core::types::Halt;

/// Ends and stops the run of an engine. Clones do the same.
#[derive(Clone)]
pub struct Control {
    state: Arc<watch::Sender<State>>,
    /// The agents whose calls it is about, the outermost first.
    agents: Arc<[u64]>,
    time: Stopwatch,
    suspend: Arc<dyn Suspend>,
}

/// Suspends everything that runs, as a shell does, and resumes it. A direct call, since a stop has to reach all at once.
pub(crate) trait Suspend: Send + Sync {
    /// Stops everything that runs, until [`Self::resume`].
    fn suspend(&self) {}

    /// Lets everything go on.
    fn resume(&self) {}
}

/// What was said.
#[derive(Debug, Default)]
struct State {
    course: Course,
    /// Agents that were ended; what they called ends.
    over: Vec<u64>,
    /// The number of the next agent.
    next: u64,
}

/// How the run goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Course {
    #[default]
    On,
    /// Nothing new starts, and what runs is ended politely.
    Ending(Halt),
    /// What runs is killed.
    Now(Halt),
}

impl Course {
    fn halt(self) -> Option<Halt> {
        match self {
            Self::On => None,
            Self::Ending(by) | Self::Now(by) => Some(by),
        }
    }
}

impl Control {
    pub(crate) fn new(suspend: Arc<dyn Suspend>) -> Self {
        Self {
            state: Arc::default(),
            agents: Arc::default(),
            time: Stopwatch::start(),
            suspend,
        }
    }

    /// Nothing new starts, in this turn and in later ones; what runs is ended as at a timeout. Every call is answered
    /// all the same. The first cause counts.
    pub fn halt(&self, by: Halt) {
        self.state.send_if_modified(|state| {
            let goes_on = state.course == Course::On;
            if goes_on {
                state.course = Course::Ending(by);
            }
            goes_on
        });
    }

    /// What is being ended politely is killed.
    pub fn halt_now(&self) {
        self.state.send_if_modified(|state| {
            let Course::Ending(by) = state.course else {
                return false;
            };
            state.course = Course::Now(by);
            true
        });
    }

    /// Why the run, or what this holds the reins of, is being ended, if it is.
    pub fn halted(&self) -> Option<Halt> {
        self.halt_in(&self.state.borrow())
    }

    fn halt_in(&self, state: &State) -> Option<Halt> {
        let is_over = |agent| state.over.contains(agent);
        let over = self.agents.iter().any(is_over);
        state.course.halt().or(over.then_some(Halt::AgentOver))
    }

    /// The reins of what one more agent calls. What ends the run ends it, too.
    pub(crate) fn of_agent(&self) -> Self {
        let mut number = 0;
        self.state.send_if_modified(|state| {
            number = state.next;
            state.next += 1;
            false
        });
        let agents = self.agents.iter().copied().chain([number]);
        Self {
            agents: agents.collect(),
            ..self.clone()
        }
    }

    /// Ends what the agent calls that these reins are for, as [`halt`](Self::halt) ends a run.
    pub(crate) fn end_agent(&self) {
        if let Some(agent) = self.agents.last() {
            self.state.send_modify(|state| state.over.push(*agent));
        }
    }

    /// Stops all that runs, and the time of every limit.
    pub fn pause(&self) {
        self.time.pause();
        self.suspend.suspend();
    }

    /// Lets all go on.
    pub fn resume(&self) {
        self.suspend.resume();
        self.time.resume();
    }

    /// Time since the engine was made, without pauses.
    pub(crate) fn now(&self) -> Duration {
        self.time.now()
    }

    /// Waits for so much time, without pauses.
    pub(crate) async fn sleep(&self, duration: Duration) {
        self.time.sleep(duration).await;
    }

    /// Waits until the run is to end.
    pub async fn ending(&self) {
        self.reach(|state| self.halt_in(state).is_some()).await;
    }

    /// Waits until what runs is to be killed.
    pub(crate) async fn killing(&self) {
        self.reach(|state| matches!(state.course, Course::Now(_)))
            .await;
    }

    async fn reach(&self, there: impl Fn(&State) -> bool) {
        // The sender is here, so that this ends only with what it waits for.
        let _ = self.state.subscribe().wait_for(there).await;
    }
}
