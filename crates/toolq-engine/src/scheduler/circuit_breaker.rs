//! `pause_after_failures`: counts the consecutive failures of each tool, in call order and across turns.
//!
//! Calls end in any order, but the count must not depend on which one was faster. So the outcome of a call counts only
//! when all earlier calls of the same tool have ended, too.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use toolq_core::types::{Outcome, Tool};

/// The failure streaks of all tools that have a limit. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct CircuitBreakers {
    /// Turns that share them are driven by one task, so the lock is never contended.
    streaks: Arc<Mutex<HashMap<String, FailureStreak>>>,
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

    /// Lets all tools run again: their definitions were read anew.
    pub(crate) fn reset(&self) {
        for streak in self.streaks.lock().values_mut() {
            streak.failures = 0;
            streak.is_paused = false;
        }
    }

    /// Takes the ticket for the next call of `tool`. `None` if the tool is never paused.
    pub(crate) fn take_ticket(&self, tool: &Tool) -> Option<Ticket> {
        if self.limit(tool) == 0 {
            return None;
        }
        let mut streaks = self.streaks.lock();
        let streak = streaks.entry(tool.name.clone()).or_default();
        streak.pending.push_back(None);
        Some(Ticket(streak.first_pending + streak.pending.len() - 1))
    }

    /// Returns how many consecutive failures paused `tool`. `None` if it isn't paused. A paused tool stays paused.
    pub(crate) fn paused_after(&self, tool: &Tool) -> Option<u32> {
        let streaks = self.streaks.lock();
        let streak = streaks.get(&tool.name)?;
        streak.is_paused.then_some(streak.failures)
    }

    /// Records the outcome of the call with this ticket.
    pub(crate) fn record_outcome(&self, tool: &Tool, ticket: Option<Ticket>, outcome: &Outcome) {
        let limit = self.limit(tool);
        let mut streaks = self.streaks.lock();
        let (Some(ticket), Some(streak)) = (ticket, streaks.get_mut(&tool.name)) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::NotExecutedCause;
    use toolq_testing::{sample_tool, success_outcome};

    fn tool(pause_after_failures: Option<u32>) -> Tool {
        Tool {
            pause_after_failures,
            ..sample_tool("t")
        }
    }

    fn failure() -> Outcome {
        Outcome::NoBacking
    }

    /// Records one call after the other, and returns after how many failures the tool is paused.
    fn pause_after(breakers: &CircuitBreakers, tool: &Tool, outcomes: &[Outcome]) -> Option<u32> {
        for outcome in outcomes {
            let ticket = breakers.take_ticket(tool);
            breakers.record_outcome(tool, ticket, outcome);
        }
        breakers.paused_after(tool)
    }

    #[test]
    fn only_failures_in_a_row_pause_a_tool() {
        let success = || success_outcome("done");
        let skipped = || {
            Outcome::NotExecuted(NotExecutedCause::PrecedingFailed {
                tool: "other".to_owned(),
            })
        };
        let two = tool(Some(2));
        for (outcomes, paused) in [
            (vec![failure()], None),
            (vec![failure(), skipped()], None),
            (vec![failure(), failure()], Some(2)),
            (vec![failure(), success(), failure()], None),
            (vec![failure(), skipped(), failure()], Some(2)),
            (vec![failure(), failure(), success(), failure()], Some(2)),
        ] {
            let paused_after = pause_after(&CircuitBreakers::default(), &two, &outcomes);
            assert_eq!(paused_after, paused, "{outcomes:?}");
        }
    }

    /// Which call was faster makes no difference.
    #[test]
    fn outcomes_count_in_call_order() {
        let two = tool(Some(2));
        let breakers = CircuitBreakers::default();
        assert_eq!(pause_after(&breakers, &two, &[failure()]), None);
        let [first, second, third] = [(); 3].map(|()| breakers.take_ticket(&two));
        breakers.record_outcome(&two, third, &failure());
        breakers.record_outcome(&two, second, &failure());
        assert_eq!(breakers.paused_after(&two), None);
        breakers.record_outcome(&two, first, &success_outcome("done"));
        assert_eq!(breakers.paused_after(&two), Some(2));

        let breakers = CircuitBreakers::default();
        let [first, second] = [(); 2].map(|()| breakers.take_ticket(&two));
        breakers.record_outcome(&two, first, &failure());
        breakers.record_outcome(&two, second, &failure());
        assert_eq!(breakers.paused_after(&two), Some(2));
    }

    #[test]
    fn tools_of_an_agent_have_a_limit_unless_they_declare_one() {
        let failures = [(); 4].map(|()| failure());
        let limits = [None, Some(0), Some(1), Some(4)];
        let of_agent =
            limits.map(|limit| pause_after(&CircuitBreakers::for_agent(), &tool(limit), &failures));
        assert_eq!(of_agent, [Some(3), None, Some(1), Some(4)]);
        let of_input =
            limits.map(|limit| pause_after(&CircuitBreakers::default(), &tool(limit), &failures));
        assert_eq!(of_input, [None, None, Some(1), Some(4)]);
        assert!(
            CircuitBreakers::default()
                .take_ticket(&tool(None))
                .is_none()
        );
    }
}
