//! Estimates when the calls of a turn start and end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::time::Duration;

/// How long the calls of a turn are expected to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnEstimate {
    /// If the calls run one after another.
    pub serial: Duration,
    /// If they run as planned.
    pub planned: Duration,
    /// Number of calls whose tool has no estimate; they count as zero.
    pub unestimated_calls: usize,
}

/// The concurrency slots of one batch: each call takes the slot that is free first.
pub(crate) struct SlotSchedule {
    jobs: usize,
    start: Duration,
    end: Duration,
    /// When each slot that was taken is free again.
    free_at: BinaryHeap<Reverse<Duration>>,
}

impl SlotSchedule {
    /// Creates `jobs` slots, all free at `start`.
    pub(crate) fn new(jobs: NonZeroUsize, start: Duration) -> Self {
        Self {
            jobs: jobs.get(),
            start,
            end: start,
            free_at: BinaryHeap::new(),
        }
    }

    /// Puts a call into a slot and returns when it starts, which is at `not_before` or later.
    pub(crate) fn schedule_call(&mut self, duration: Duration, not_before: Duration) -> Duration {
        let free_at = if self.free_at.len() < self.jobs {
            self.start
        } else {
            self.free_at.pop().map_or(self.start, |Reverse(at)| at)
        };
        let start = free_at.max(not_before);
        let end = start.saturating_add(duration);
        self.free_at.push(Reverse(end));
        self.end = self.end.max(end);
        start
    }

    /// Returns when the last call ends.
    pub(crate) fn end(&self) -> Duration {
        self.end
    }
}
