//! How long a run should have taken, by the estimates of its tools.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use toolq_core::plan::TurnEstimator;
use toolq_core::text::format_duration;
use toolq_core::types::{Event, ToolsConfig, Verdict};

/// Adds up what plans of a run's turns would say, while their calls arrive.
pub(super) struct PlannedDurationMeter {
    tools: Arc<ToolsConfig>,
    jobs: NonZeroUsize,
    /// The turn whose calls arrive.
    turn: Option<TurnEstimator>,
    /// Of the turns before it.
    total: Duration,
    has_estimate: bool,
    has_unknown: bool,
    /// Two turns ran at the same time. No plan is about that.
    turns_overlap: bool,
}

impl PlannedDurationMeter {
    /// Returns `None` if no tool has an estimate.
    pub(super) fn new(tools: &Arc<ToolsConfig>, jobs: NonZeroUsize) -> Option<Self> {
        let has_estimates = tools.tools.iter().any(|tool| tool.estimate.is_some());
        has_estimates.then(|| Self {
            tools: Arc::clone(tools),
            jobs,
            turn: None,
            total: Duration::ZERO,
            has_estimate: false,
            has_unknown: false,
            turns_overlap: false,
        })
    }

    /// Takes note of an event. What agents do is a part of their calls.
    pub(super) fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::TurnStarted { parent: None, .. } => {
                self.turns_overlap |= self.turn.is_some();
                self.turn = Some(TurnEstimator::default());
            }
            Event::Queued {
                checked,
                batch: Some(_),
            } if checked.call.parent.is_none() => {
                if let Verdict::Accepted(accepted) = &checked.verdict
                    && let Some(turn) = &mut self.turn
                {
                    turn.add(accepted, &self.tools);
                    let estimate = accepted.tool.estimate;
                    self.has_estimate |= estimate.is_some();
                    self.has_unknown |= estimate.is_none();
                }
            }
            Event::QueueDrained { .. } => {
                let turn = self.turn.take().unwrap_or_default();
                self.total += turn.estimate(self.jobs).planned;
            }
            _ => {}
        }
    }

    /// Formats the time as `estimated 4s`, or `estimated at least 4s` if a call has no estimate. `None` if there is no such
    /// time, or as long as a turn isn't over.
    pub(super) fn label(&self) -> Option<String> {
        if self.turns_overlap || !self.has_estimate || self.turn.is_some() {
            return None;
        }
        let at_least = if self.has_unknown { "at least " } else { "" };
        Some(format!(
            "estimated {at_least}{}",
            format_duration(self.total)
        ))
    }
}
