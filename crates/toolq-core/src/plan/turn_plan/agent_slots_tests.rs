//! Agents and other calls share no slots, unless everything runs in turn.

use std::num::NonZeroUsize;

use super::*;

use crate::testing::{call_with_estimate, sample_tools};
use crate::types::AgentInvocation;

/// Calls of two seconds each: of an agent for `a`, of a program for `c`.
fn parallel_calls(kinds: &str) -> Vec<CheckedCall> {
    let calls = kinds.chars().enumerate().map(|(position, kind)| {
        let mut checked = call_with_estimate(position, "t", 2, true);
        if let (true, Verdict::Accepted(accepted)) = (kind == 'a', &mut checked.verdict) {
            accepted.invocation = Some(Invocation::Agent(AgentInvocation { prompt: None }));
        }
        checked
    });
    calls.collect()
}

#[test]
fn agents_have_slots_of_their_own_unless_everything_runs_in_turn() {
    for (kinds, jobs, seconds, title) in [
        ("acac", 1, 8, "batch 0: 4 calls, 1 at a time"),
        ("acac", 2, 2, "batch 0: 4 in parallel"),
        ("aaac", 2, 4, "batch 0: 4 calls, 2 at a time"),
        ("cccc", 2, 4, "batch 0: 4 calls, 2 at a time"),
        ("aacc", 3, 2, "batch 0: 4 in parallel"),
    ] {
        let (calls, tools) = (parallel_calls(kinds), sample_tools(Vec::new()));
        let plan = TurnPlan::new(0, &calls, &tools, NonZeroUsize::new(jobs).unwrap());
        assert_eq!(plan.estimate.planned.as_secs(), seconds, "{kinds} {jobs}");
        assert_eq!(plan.batch_title(0), title, "{kinds} {jobs}");
    }
}
