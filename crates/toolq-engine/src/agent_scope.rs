//! The constraints on an agent that follow from the agents it is nested in.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use toolq_core::types::{
    AgentBacking, AgentBudget, AgentFailure, ModelPrice, PicoUsd, ReportedUsage, Tool,
};

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

// Tracks what an agent has used of the budget of its call. What the agents that it calls use counts, too.

const PICO_USD_PER_USD: f64 = 1e12;

/// A budget and what has been used of it.
#[derive(Debug)]
pub(crate) struct AgentBudgetMeter {
    agent: String,
    budget: AgentBudget,
    turns: AtomicU64,
    tokens: AtomicU64,
    totals: Mutex<BudgetTotals>,
    parent: Option<Arc<AgentBudgetMeter>>,
}

#[derive(Debug, Default)]
struct BudgetTotals {
    cost: PicoUsd,
    /// The model of a response whose price isn't known.
    unpriced_model: Option<String>,
    /// The model of a response for which the API reported no usage.
    uncounted_model: Option<String>,
}

impl AgentBudgetMeter {
    /// Creates an unused meter. Usage is charged to `parent`, the meter of the calling agent, as well.
    pub(crate) fn new(
        agent: &str,
        budget: AgentBudget,
        parent: Option<Arc<AgentBudgetMeter>>,
    ) -> Self {
        Self {
            agent: agent.to_owned(),
            budget,
            turns: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            totals: Mutex::default(),
            parent,
        }
    }

    /// Counts a response of `model`, for this agent and for all agents that it is nested in.
    pub(crate) fn record_response(
        &self,
        model: &str,
        tokens: ReportedUsage,
        price: Option<&ModelPrice>,
    ) {
        self.turns.fetch_add(1, Relaxed);
        self.record_tokens(model, tokens, price);
        if let Some(parent) = &self.parent {
            parent.record_response(model, tokens, price);
        }
    }

    fn record_tokens(&self, model: &str, tokens: ReportedUsage, price: Option<&ModelPrice>) {
        let mut totals = self.totals.lock();
        let Some(usage) = tokens.0 else {
            totals.uncounted_model = Some(model.to_owned());
            return;
        };
        self.tokens.fetch_add(usage.total(), Relaxed);
        match price.and_then(|price| price.cost(&usage)) {
            Some(cost) => totals.cost += cost,
            None => totals.unpriced_model = Some(model.to_owned()),
        }
    }

    /// Checks that the agent may send another request.
    ///
    /// # Errors
    /// The budget that forbids it: the first one, from this agent's outward.
    pub(crate) fn check_limits(&self) -> Result<(), AgentFailure> {
        if let Some((budget, unknown)) = self.exhausted_budget() {
            return Err(AgentFailure::OverBudget {
                agent: self.agent.clone(),
                budget,
                unknown_usage_reason: unknown,
            });
        }
        self.parent
            .as_ref()
            .map_or(Ok(()), |parent| parent.check_limits())
    }

    /// Returns the budget that is used up, or that can't be enforced, as a text. In the latter case, also returns why.
    fn exhausted_budget(&self) -> Option<(String, Option<String>)> {
        let AgentBudget { turns, tokens, usd } = self.budget;
        if let Some(turns) = turns.filter(|turns| self.turns.load(Relaxed) >= *turns) {
            let word = if turns == 1 { "turn" } else { "turns" };
            return Some((format!("{turns} {word}"), None));
        }
        let totals = self.totals.lock();
        let uncounted_model = totals.uncounted_model.as_ref();
        let missing_usage =
            uncounted_model.map(|model| format!("the API reported no usage for {model}"));
        if let Some(tokens) = tokens {
            let budget = format!("{tokens} tokens");
            if self.tokens.load(Relaxed) >= tokens {
                return Some((budget, None));
            }
            if missing_usage.is_some() {
                return Some((budget, missing_usage));
            }
        }
        let usd = usd?;
        let unpriced_model = totals.unpriced_model.as_ref();
        let missing_price = unpriced_model.map(|model| format!("`prices` doesn't cover {model}"));
        #[expect(
            clippy::cast_precision_loss,
            reason = "15 digits are enough for a limit"
        )]
        let cost = totals.cost as f64 / PICO_USD_PER_USD;
        let unknown = missing_usage.or(missing_price);
        (cost >= usd || unknown.is_some())
            .then(|| (format!("{usd} USD"), unknown.filter(|_| cost < usd)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::Usage;

    fn usage(tokens: u64) -> ReportedUsage {
        let usage = Usage {
            input: tokens,
            ..Usage::default()
        };
        usage.into()
    }

    #[test]
    fn usage_of_a_sub_agent_counts_for_its_parent() {
        let tokens = |limit| AgentBudget {
            tokens: Some(limit),
            ..AgentBudget::default()
        };
        let parent = Arc::new(AgentBudgetMeter::new("lead", tokens(100), None));
        let child = AgentBudgetMeter::new("expert", tokens(60), Some(Arc::clone(&parent)));
        child.record_response("m", usage(50), None);
        assert_eq!(child.check_limits(), Ok(()));
        parent.record_response("m", usage(50), None);
        let Err(AgentFailure::OverBudget { agent, budget, .. }) = child.check_limits() else {
            panic!("the parent's budget should be used up");
        };
        assert_eq!((agent.as_str(), budget.as_str()), ("lead", "100 tokens"));
    }

    #[test]
    fn dollars_are_counted_by_price() {
        let budget = AgentBudget {
            usd: Some(0.01),
            ..AgentBudget::default()
        };
        let price = ModelPrice {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: None,
            cache_write: None,
        };
        let meter = AgentBudgetMeter::new("a", budget, None);
        meter.record_response("m", usage(3_333), Some(&price));
        assert_eq!(meter.check_limits(), Ok(()));
        meter.record_response("m", usage(1), Some(&price));
        assert!(meter.check_limits().is_err());
        let unpriced = AgentBudgetMeter::new("a", budget, None);
        unpriced.record_response("m", usage(1), None);
        assert!(unpriced.check_limits().is_err());
    }

    /// Usage that the API doesn't report must not count as zero.
    #[test]
    fn unknown_usage_exhausts_a_budget_that_needs_it() {
        let why = |budget: AgentBudget| {
            let parent = Arc::new(AgentBudgetMeter::new("lead", budget, None));
            let meter = AgentBudgetMeter::new("a", AgentBudget::default(), Some(parent));
            meter.record_response("m", ReportedUsage(None), None);
            match meter.check_limits() {
                Ok(()) => None,
                Err(AgentFailure::OverBudget {
                    unknown_usage_reason: unknown,
                    ..
                }) => unknown,
                Err(other) => panic!("{other:?}"),
            }
        };
        let unlimited = AgentBudget::default();
        let missing_usage = "the API reported no usage for m";
        let (tokens, usd) = (Some(100), Some(1.0));
        assert_eq!(
            why(AgentBudget {
                tokens,
                ..unlimited
            })
            .as_deref(),
            Some(missing_usage)
        );
        assert_eq!(
            why(AgentBudget { usd, ..unlimited }).as_deref(),
            Some(missing_usage)
        );
        let turns = Some(2);
        assert_eq!(why(AgentBudget { turns, ..unlimited }), None);
    }
}
