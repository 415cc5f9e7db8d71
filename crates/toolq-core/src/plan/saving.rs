//! What a plan would gain if one more tool were declared concurrency-safe.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::plan::turn_plan::TurnPlan;
use crate::types::SafetySource;

/// Maximum number of tools that are tried: the first ones by name.
const MAX_TOOLS: usize = 50;

/// The declaration that would shorten a turn the most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeDeclarationSaving {
    /// The tool that says nothing about concurrency.
    pub tool: String,
    /// How long the turn would take.
    pub planned: Duration,
}

impl TurnPlan<'_> {
    /// Returns the tool whose declaration as concurrency-safe would save the most time. Only tools without a
    /// declaration are considered, since an existing one is the author's decision.
    pub fn best_safe_declaration(&self) -> Option<SafeDeclarationSaving> {
        let accepted = self.planned_calls().map(|planned| planned.accepted);
        let undecided = accepted.filter(|accepted| accepted.safety_source == SafetySource::Default);
        let names: BTreeSet<&str> = undecided
            .map(|accepted| accepted.tool.name.as_str())
            .collect();
        let savings = names.into_iter().take(MAX_TOOLS).map(|tool| {
            let planned = self.duration_if_safe(tool);
            SafeDeclarationSaving {
                tool: tool.to_owned(),
                planned,
            }
        });
        let best = savings.min_by(|one, other| {
            let one = (one.planned, &one.tool);
            one.cmp(&(other.planned, &other.tool))
        });
        best.filter(|saving| saving.planned < self.estimate.planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::num::NonZeroUsize;

    use crate::testing::{accepted_call, call_with_estimate, sample_tool, sample_tools};
    use crate::types::{CheckedCall, Tool, Verdict};

    /// Returns an unsafe call that takes a second.
    fn unsafe_call(position: usize, name: &str, source: SafetySource) -> CheckedCall {
        let tool = Tool {
            estimate: Some(Duration::from_secs(1)),
            ..sample_tool(name)
        };
        let mut checked = accepted_call(position, tool, false, "{}");
        if let Verdict::Accepted(accepted) = &mut checked.verdict {
            accepted.safety_source = source;
        }
        checked
    }

    fn saving(calls: &[CheckedCall]) -> Option<(String, u64)> {
        let tools = sample_tools(Vec::new());
        let plan = TurnPlan::new(0, calls, &tools, NonZeroUsize::new(10).unwrap());
        let saving = plan.best_safe_declaration()?;
        Some((saving.tool, saving.planned.as_secs()))
    }

    #[test]
    fn the_declaration_that_saves_the_most_is_found() {
        let undecided = |position, name| unsafe_call(position, name, SafetySource::Default);
        let calls = [
            undecided(0, "once"),
            undecided(1, "often"),
            undecided(2, "often"),
            undecided(3, "often"),
        ];
        assert_eq!(saving(&calls), Some(("often".to_owned(), 2)));
    }

    /// Not all tools are tried, but always the same ones.
    #[test]
    fn the_same_plan_has_the_same_suggestion() {
        let calls: Vec<CheckedCall> = (0..4 * MAX_TOOLS)
            .map(|position| (position, format!("tool_{:03}", position / 2)))
            .map(|(position, name)| unsafe_call(position, &name, SafetySource::Default))
            .collect();
        for _ in 0..10 {
            let suggested = saving(&calls).map(|(tool, _)| tool);
            assert_eq!(suggested.as_deref(), Some("tool_000"));
        }
    }

    #[test]
    fn what_the_author_decided_is_not_questioned() {
        let decided = |position, name| unsafe_call(position, name, SafetySource::Declared);
        assert_eq!(saving(&[decided(0, "pay"), decided(1, "pay")]), None);
        let safe = |position| call_with_estimate(position, "get", 1, true);
        assert_eq!(saving(&[safe(0), safe(1)]), None);
        assert_eq!(
            saving(&[unsafe_call(0, "alone", SafetySource::Default)]),
            None
        );
    }
}
