//! What a run may use over all its turns, and what it has used. Pure but for one wait: time is given.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use crate::control::Control;
use toolq_core::types::Budget;

/// Limits of a run; none is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Calls that are started, each counted once however often it is repeated.
    pub calls: Option<u64>,
    /// Time from the engine's first turn on.
    pub time: Option<Duration>,
    /// Bytes that tools write as their results, cut or not.
    pub output: Option<u64>,
}

/// What a run has used of its budgets. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Spending {
    budgets: Budgets,
    calls: Arc<AtomicU64>,
    /// When the first turn began.
    since: Arc<OnceLock<Duration>>,
    meter: Meter,
}

impl Spending {
    pub(crate) fn new(budgets: Budgets) -> Self {
        Self {
            budgets,
            calls: Arc::default(),
            since: Arc::default(),
            meter: Meter::new(budgets.output),
        }
    }

    /// The same budget of time, and no other.
    pub(crate) fn of_time(&self) -> Self {
        let budgets = Budgets {
            time: self.budgets.time,
            ..Budgets::default()
        };
        Self {
            since: Arc::clone(&self.since),
            ..Self::new(budgets)
        }
    }

    /// The time budget runs from here on, if it doesn't yet.
    pub(crate) fn begin(&self, now: Duration) {
        self.since.get_or_init(|| now);
    }

    /// Takes a call out of its budget.
    ///
    /// # Errors
    /// It is used up.
    pub(crate) fn take_call(&self) -> Result<(), Budget> {
        let most = self.budgets.calls.unwrap_or(u64::MAX);
        let more = |calls: u64| (calls < most).then_some(calls + 1);
        let taken = self.calls.fetch_update(Relaxed, Relaxed, more);
        taken.map(drop).map_err(|_| Budget::Calls(most))
    }

    /// The budget of time or output that is used up.
    pub(crate) fn used_up(&self, now: Duration) -> Option<Budget> {
        let over = |time: &Duration| self.left(*time, now).is_zero();
        let time = self.budgets.time.filter(over).map(Budget::Time);
        let output = self.budgets.output.filter(|_| self.meter.is_over());
        time.or(output.map(Budget::Output))
    }

    /// Waits until a budget of time or output may be used up.
    pub(crate) async fn run_out(&self, control: &Control) {
        let time = async {
            match self.budgets.time {
                Some(time) => control.sleep(self.left(time, control.now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            () = self.meter.over.notified() => {}
        }
    }

    /// Counts what a call writes.
    pub(crate) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    fn left(&self, time: Duration, now: Duration) -> Duration {
        let since = self.since.get().copied().unwrap_or(now);
        time.saturating_sub(now.saturating_sub(since))
    }
}

/// Counts bytes of output as they come. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    limit: u64,
    written: Arc<AtomicU64>,
    over: Arc<Notify>,
}

impl Meter {
    fn new(limit: Option<u64>) -> Self {
        Self {
            limit: limit.unwrap_or(u64::MAX),
            written: Arc::default(),
            over: Arc::default(),
        }
    }

    /// So many bytes more came.
    pub(crate) fn add(&self, bytes: usize) {
        let before = self.written.fetch_add(bytes as u64, Relaxed);
        if before < self.limit && before.saturating_add(bytes as u64) >= self.limit {
            self.over.notify_one();
        }
    }

    fn is_over(&self) -> bool {
        self.written.load(Relaxed) >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// FAULTS 133.
    #[test]
    fn calls_are_counted_as_they_start() {
        let spending = Spending::new(Budgets {
            calls: Some(2),
            ..Budgets::default()
        });
        let taken: Vec<bool> = (0..4).map(|_| spending.take_call().is_ok()).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert_eq!(spending.used_up(1000 * SECOND), None);
        let free = Spending::new(Budgets::default());
        assert!((0..1000).all(|_| free.take_call().is_ok()));
    }

    #[test]
    fn time_runs_from_the_first_turn() {
        let time = Some(10 * SECOND);
        let spending = Spending::new(Budgets {
            time,
            ..Budgets::default()
        });
        assert_eq!(spending.used_up(99 * SECOND), None);
        spending.begin(100 * SECOND);
        spending.begin(105 * SECOND);
        assert_eq!(spending.used_up(109 * SECOND), None);
        assert_eq!(
            spending.used_up(110 * SECOND),
            Some(Budget::Time(10 * SECOND))
        );
    }

    #[test]
    fn output_is_counted_over_all_calls() {
        let spending = Spending::new(Budgets {
            output: Some(10),
            ..Budgets::default()
        });
        let (one, other) = (spending.meter(), spending.meter());
        one.add(6);
        other.add(3);
        assert_eq!(spending.used_up(SECOND), None);
        one.add(7);
        assert_eq!(spending.used_up(SECOND), Some(Budget::Output(10)));
    }
}
