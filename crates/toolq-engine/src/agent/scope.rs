//! The constraints on an agent that follow from the agents it is nested in.

use std::sync::Arc;

use crate::agent::budget::AgentBudgetMeter;
use toolq_core::types::{AgentBacking, Tool};

/// How deeply an agent is nested in others, and what constrains its calls.
#[derive(Debug)]
pub(crate) struct AgentScope {
    /// The agent's depth. 1 for an agent that isn't nested.
    pub(crate) depth: u32,
    /// The maximum depth of agents.
    pub(crate) max_depth: u32,
    /// The agent runs in parallel with other calls, so its own calls must be concurrency-safe, too.
    pub(crate) requires_safe_calls: bool,
    pub(crate) budget_meter: Arc<AgentBudgetMeter>,
}

impl AgentScope {
    /// Returns the scope of an agent that is called by the agent with the scope `parent`, or by the input.
    pub(crate) fn for_call(
        tool: &Tool,
        backing: &AgentBacking,
        safe: bool,
        parent: Option<&Self>,
    ) -> Self {
        let depth = parent.map_or(0, |parent| parent.depth) + 1;
        let own_max_depth = depth.saturating_add(backing.max_depth - 1);
        let parent_meter = parent.map(|parent| Arc::clone(&parent.budget_meter));
        Self {
            depth,
            max_depth: parent.map_or(own_max_depth, |parent| parent.max_depth.min(own_max_depth)),
            requires_safe_calls: safe || parent.is_some_and(|parent| parent.requires_safe_calls),
            budget_meter: Arc::new(AgentBudgetMeter::new(
                &tool.name,
                backing.budget,
                parent_meter,
            )),
        }
    }
}
