use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::time::Duration;

/// How long the calls of a turn are expected to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// One after the other.
    pub serial: Duration,
    /// As planned.
    pub planned: Duration,
    /// Calls whose tool has no estimate; they count as nothing.
    pub unknown: usize,
}

/// Places for calls of one batch: each call takes the place that is free first.
pub(crate) struct Slots {
    jobs: usize,
    start: Duration,
    end: Duration,
    /// When each taken place is free again.
    free: BinaryHeap<Reverse<Duration>>,
}

impl Slots {
    /// `jobs` places, all free at `start`.
    pub(crate) fn new(jobs: NonZeroUsize, start: Duration) -> Self {
        Self {
            jobs: jobs.get(),
            start,
            end: start,
            free: BinaryHeap::new(),
        }
    }

    /// When a call that takes so long starts.
    pub(crate) fn take(&mut self, takes: Duration) -> Duration {
        let start = if self.free.len() < self.jobs {
            self.start
        } else {
            self.free.pop().map_or(self.start, |Reverse(at)| at)
        };
        let end = start.saturating_add(takes);
        self.free.push(Reverse(end));
        self.end = self.end.max(end);
        start
    }

    /// When a call that takes so long and no place starts.
    pub(crate) fn pass(&mut self, takes: Duration) -> Duration {
        self.end = self.end.max(self.start.saturating_add(takes));
        self.start
    }

    /// When the last call ends.
    pub(crate) fn end(&self) -> Duration {
        self.end
    }
}
