//! The budgets of a run over all its turns, and what it has used of them. Pure except for one wait: the time is passed
//! in.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use crate::control::RunControl;
use toolq_core::types::BudgetLimit;

/// The limits of a run. `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// How many calls may start. Retries don't count.
    pub calls: Option<u64>,
    /// Time since the start of the engine's first turn.
    pub time: Option<Duration>,
    /// Bytes of output that tools write, including what is truncated.
    pub output_bytes: Option<u64>,
}

/// What a run has used of its budgets. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct RunBudget {
    limits: BudgetLimits,
    calls_started: Arc<AtomicU64>,
    /// When the first turn started, in the engine's time.
    started_at: Arc<OnceLock<Duration>>,
    output_counter: OutputCounter,
}

impl RunBudget {
    pub(crate) fn new(limits: BudgetLimits) -> Self {
        Self {
            limits,
            calls_started: Arc::default(),
            started_at: Arc::default(),
            output_counter: OutputCounter::new(limits.output_bytes),
        }
    }

    /// Returns a budget with the same time limit and no other limits.
    pub(crate) fn time_only(&self) -> Self {
        let limits = BudgetLimits {
            time: self.limits.time,
            ..BudgetLimits::default()
        };
        Self {
            started_at: Arc::clone(&self.started_at),
            ..Self::new(limits)
        }
    }

    /// Starts the time budget, unless it has already started.
    pub(crate) fn start_clock(&self, now: Duration) {
        self.started_at.get_or_init(|| now);
    }

    /// Charges one call to the budget of calls.
    ///
    /// # Errors
    /// That budget, if it is used up.
    pub(crate) fn charge_call(&self) -> Result<(), BudgetLimit> {
        let limit = self.limits.calls.unwrap_or(u64::MAX);
        let increment = |calls: u64| (calls < limit).then_some(calls + 1);
        let taken = self.calls_started.fetch_update(Relaxed, Relaxed, increment);
        taken.map(drop).map_err(|_| BudgetLimit::Calls(limit))
    }

    /// Returns the time or output budget that is used up, if one is.
    pub(crate) fn exhausted_budget(&self, now: Duration) -> Option<BudgetLimit> {
        let is_expired = |time: &Duration| self.remaining_time(*time, now).is_zero();
        let time = self.limits.time.filter(is_expired).map(BudgetLimit::Time);
        let counter = &self.output_counter;
        let is_used_up = |_: &u64| counter.bytes_written.load(Relaxed) >= counter.limit;
        let output = self.limits.output_bytes.filter(is_used_up);
        time.or(output.map(BudgetLimit::Output))
    }

    /// Waits until the time or output budget may be used up.
    pub(crate) async fn wait_for_exhaustion(&self, control: &RunControl) {
        let time = async {
            match self.limits.time {
                Some(time) => {
                    control
                        .sleep(self.remaining_time(time, control.now()))
                        .await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            () = self.output_counter.limit_reached.notified() => {}
        }
    }

    /// Returns a counter for the output of a call.
    pub(crate) fn output_counter(&self) -> OutputCounter {
        self.output_counter.clone()
    }

    fn remaining_time(&self, limit: Duration, now: Duration) -> Duration {
        let started_at = self.started_at.get().copied().unwrap_or(now);
        limit.saturating_sub(now.saturating_sub(started_at))
    }
}

/// Counts bytes of output as they are written. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct OutputCounter {
    limit: u64,
    bytes_written: Arc<AtomicU64>,
    limit_reached: Arc<Notify>,
}

impl OutputCounter {
    fn new(limit: Option<u64>) -> Self {
        Self {
            limit: limit.unwrap_or(u64::MAX),
            bytes_written: Arc::default(),
            limit_reached: Arc::default(),
        }
    }

    /// Counts `bytes` more bytes.
    pub(crate) fn add(&self, bytes: usize) {
        let before = self.bytes_written.fetch_add(bytes as u64, Relaxed);
        if before < self.limit && before.saturating_add(bytes as u64) >= self.limit {
            self.limit_reached.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn calls_are_counted_as_they_start() {
        let run_budget = RunBudget::new(BudgetLimits {
            calls: Some(2),
            ..BudgetLimits::default()
        });
        let taken: Vec<bool> = (0..4).map(|_| run_budget.charge_call().is_ok()).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert_eq!(run_budget.exhausted_budget(1000 * SECOND), None);
        let unlimited = RunBudget::new(BudgetLimits::default());
        assert!((0..1000).all(|_| unlimited.charge_call().is_ok()));
    }

    #[test]
    fn time_runs_from_the_first_turn() {
        let time = Some(10 * SECOND);
        let run_budget = RunBudget::new(BudgetLimits {
            time,
            ..BudgetLimits::default()
        });
        assert_eq!(run_budget.exhausted_budget(99 * SECOND), None);
        run_budget.start_clock(100 * SECOND);
        run_budget.start_clock(105 * SECOND);
        assert_eq!(run_budget.exhausted_budget(109 * SECOND), None);
        assert_eq!(
            run_budget.exhausted_budget(110 * SECOND),
            Some(BudgetLimit::Time(10 * SECOND))
        );
    }

    #[test]
    fn output_is_counted_over_all_calls() {
        let run_budget = RunBudget::new(BudgetLimits {
            output_bytes: Some(10),
            ..BudgetLimits::default()
        });
        let (one, other) = (run_budget.output_counter(), run_budget.output_counter());
        one.add(6);
        other.add(3);
        assert_eq!(run_budget.exhausted_budget(SECOND), None);
        one.add(7);
        assert_eq!(
            run_budget.exhausted_budget(SECOND),
            Some(BudgetLimit::Output(10))
        );
    }
}
