//! The constraints on an agent that follow from the agents it is nested in.

use crate::agent::budget::AgentBudgetMeter;
use std::sync::Arc;

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
