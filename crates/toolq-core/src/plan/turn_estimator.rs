//! Estimates how long a turn takes as planned, from calls that arrive one by one.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::plan::schedule::{SimulatedCall, TurnSimulation};
use crate::types::{AcceptedCall, ToolsConfig};

/// The calls of a turn that will run, without their inputs. It comes to the same estimate as a
/// [`TurnPlan`](crate::plan::TurnPlan), which needs all calls at once.
#[derive(Debug, Default)]
pub struct TurnEstimator {
    calls: Vec<SimulatedCall>,
}

impl TurnEstimator {
    /// Adds the next call that will run.
    pub fn add(&mut self, accepted: &AcceptedCall, tools: &ToolsConfig) {
        self.calls.push(SimulatedCall::new(accepted, tools));
    }

    /// Returns how long the turn is expected to take if at most `jobs` of its calls run at once.
    pub fn estimate(self, jobs: NonZeroUsize) -> TurnEstimate {
        TurnSimulation::new(self.calls.into_iter(), jobs)
            .run()
            .estimate
    }
}

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

impl TurnEstimate {
    /// Adds a call that starts at this time after the turn's start.
    pub(crate) fn add(&mut self, start: Duration, estimate: Option<Duration>) {
        let takes = estimate.unwrap_or_default();
        self.serial = self.serial.saturating_add(takes);
        self.planned = self.planned.max(start.saturating_add(takes));
        self.unestimated_calls += usize::from(estimate.is_none());
    }
}
