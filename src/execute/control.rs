//! The reins of a run: who holds them ends it, stops it and lets it go on, at any moment, from anywhere.
//!
//! It only keeps what was said. What that means for each call, the dispatcher and the attempts decide.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::model::Halt;

use super::attempt::Runner;
use super::stopwatch::Stopwatch;

/// Ends and stops the run of an engine. Clones do the same.
#[derive(Clone)]
pub struct Control {
    course: Arc<watch::Sender<Course>>,
    time: Stopwatch,
    runner: Arc<dyn Runner>,
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
    pub(super) fn new(runner: Arc<dyn Runner>) -> Self {
        Self {
            course: Arc::default(),
            time: Stopwatch::start(),
            runner,
        }
    }

    /// Nothing new starts, in this turn and in later ones; what runs is ended as at a timeout. Every call is answered
    /// all the same. The first cause counts.
    pub fn halt(&self, by: Halt) {
        self.course.send_if_modified(|course| {
            let goes_on = *course == Course::On;
            if goes_on {
                *course = Course::Ending(by);
            }
            goes_on
        });
    }

    /// What is being ended politely is killed.
    pub fn halt_now(&self) {
        self.course.send_if_modified(|course| {
            let Course::Ending(by) = *course else {
                return false;
            };
            *course = Course::Now(by);
            true
        });
    }

    /// Why the run is being ended, if it is.
    pub fn halted(&self) -> Option<Halt> {
        self.course.borrow().halt()
    }

    /// Stops all that runs, and the time of every limit.
    pub fn pause(&self) {
        self.time.pause();
        self.runner.hold();
    }

    /// Lets all go on.
    pub fn resume(&self) {
        self.runner.release();
        self.time.resume();
    }

    /// Time since the engine was made, without pauses.
    pub(super) fn now(&self) -> Duration {
        self.time.now()
    }

    /// Waits for so much time, without pauses.
    pub(super) async fn sleep(&self, duration: Duration) {
        self.time.sleep(duration).await;
    }

    /// Waits until the run is to end.
    pub async fn ending(&self) {
        self.reach(|course| course.halt().is_some()).await;
    }

    /// Waits until what runs is to be killed.
    pub(super) async fn killing(&self) {
        self.reach(|course| matches!(course, Course::Now(_))).await;
    }

    async fn reach(&self, there: impl Fn(&Course) -> bool) {
        // The sender is here, so that this ends only with what it waits for.
        let _ = self.course.subscribe().wait_for(there).await;
    }
}
