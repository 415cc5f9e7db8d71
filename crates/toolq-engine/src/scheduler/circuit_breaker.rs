//! `pause_after_failures`: counts the consecutive failures of each tool, in call order and across turns.
//!
//! Calls end in any order, but the count must not depend on which one was faster. So the outcome of a call counts only
//! when all earlier calls of the same tool have ended, too.

use std::collections::{HashMap, VecDeque};

use toolq_core::types::{Outcome, Tool};

/// The failure streaks of all tools that have a limit.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreakers {
    streaks: HashMap<String, FailureStreak>,
    /// The limit of tools that don't declare one. 0 means that they are never paused.
    default_limit: u32,
}

/// The position of a call among the calls of its tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(usize);

/// What the outcome of a call says about its tool.
#[derive(Debug, Clone, Copy)]
enum Observation {
    Success,
    Failure,
    /// Not the tool's doing: the call was stopped from outside or never started.
    Neutral,
}

#[derive(Debug, Default)]
struct FailureStreak {
    /// The position of the first call in `pending`.
    first_pending: usize,
    /// The calls that haven't been counted, starting with the first one that hasn't ended.
    pending: VecDeque<Option<Observation>>,
    failures: u32,
    is_paused: bool,
}

impl CircuitBreakers {
    /// Returns circuit breakers for the tools of an agent, which pause after three failures unless they declare a
    /// limit.
    pub(crate) fn for_agent() -> Self {
        Self {
            default_limit: 3,
            ..Self::default()
        }
    }

    fn limit(&self, tool: &Tool) -> u32 {
        tool.pause_after_failures.unwrap_or(self.default_limit)
    }

    /// Takes the ticket for the next call of `tool`. `None` if the tool is never paused.
    pub(crate) fn take_ticket(&mut self, tool: &Tool) -> Option<Ticket> {
        if self.limit(tool) == 0 {
            return None;
        }
        let streak = self.streaks.entry(tool.name.clone()).or_default();
        streak.pending.push_back(None);
        Some(Ticket(streak.first_pending + streak.pending.len() - 1))
    }

    /// Returns how many consecutive failures paused `tool`. `None` if it isn't paused. A paused tool stays paused.
    pub(crate) fn paused_after(&self, tool: &Tool) -> Option<u32> {
        let streak = self.streaks.get(&tool.name)?;
        streak.is_paused.then_some(streak.failures)
    }

    /// Records the outcome of the call with this ticket.
    pub(crate) fn record_outcome(
        &mut self,
        tool: &Tool,
        ticket: Option<Ticket>,
        outcome: &Outcome,
    ) {
        let limit = self.limit(tool);
        let (Some(ticket), Some(streak)) = (ticket, self.streaks.get_mut(&tool.name)) else {
            return;
        };
        if let Some(observation) = streak.pending.get_mut(ticket.0 - streak.first_pending) {
            *observation = Some(Observation::from_outcome(outcome));
        }
        streak.count_finished(limit);
    }
}

impl FailureStreak {
    /// Counts the calls that have ended, up to the first one that hasn't.
    fn count_finished(&mut self, limit: u32) {
        while let Some(Some(observation)) = self.pending.front().copied() {
            self.pending.pop_front();
            self.first_pending += 1;
            match observation {
                _ if self.is_paused => {}
                Observation::Success => self.failures = 0,
                Observation::Failure => self.failures += 1,
                Observation::Neutral => {}
            }
            self.is_paused = self.failures >= limit;
        }
    }
}

impl Observation {
    fn from_outcome(outcome: &Outcome) -> Self {
        if !outcome.is_error() {
            Self::Success
        } else if outcome.is_skipped() || outcome.is_stopped_externally() {
            Self::Neutral
        } else {
            Self::Failure
        }
    }
}
