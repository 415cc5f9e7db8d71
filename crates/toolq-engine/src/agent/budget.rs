//! What a call of an agent has used of its budget. What the agents that it calls use counts, too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use toolq_core::types::{AgentBudget, AgentFault, PicoUsd, Price, Tokens};

/// Picodollars of a dollar.
const USD: f64 = 1e12;

/// A budget and what is used of it.
#[derive(Debug)]
pub(crate) struct Purse {
    agent: String,
    budget: AgentBudget,
    turns: AtomicU64,
    tokens: AtomicU64,
    spent: Mutex<Spent>,
    above: Option<Arc<Purse>>,
}

#[derive(Debug, Default)]
struct Spent {
    sum: PicoUsd,
    /// The model of an answer that has no known price.
    unpriced: Option<String>,
    /// The model of an answer whose API told no usage.
    uncounted: Option<String>,
}

impl Purse {
    /// The full purse of an agent, below that of the agent that called it.
    pub(crate) fn new(agent: &str, budget: AgentBudget, above: Option<Arc<Purse>>) -> Self {
        Self {
            agent: agent.to_owned(),
            budget,
            turns: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            spent: Mutex::default(),
            above,
        }
    }

    /// Counts an answer of `model`, here and above.
    pub(crate) fn take(&self, model: &str, tokens: Tokens, price: Option<&Price>) {
        self.turns.fetch_add(1, Relaxed);
        self.count(model, tokens, price);
        if let Some(above) = &self.above {
            above.take(model, tokens, price);
        }
    }

    /// The same of one that broke off, which is no turn.
    pub(crate) fn lose(&self, model: &str, tokens: Tokens, price: Option<&Price>) {
        self.count(model, tokens, price);
        if let Some(above) = &self.above {
            above.lose(model, tokens, price);
        }
    }

    fn count(&self, model: &str, tokens: Tokens, price: Option<&Price>) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(usage) = tokens.0 else {
            spent.uncounted = Some(model.to_owned());
            return;
        };
        self.tokens.fetch_add(usage.total(), Relaxed);
        match price.and_then(|price| price.of(&usage)) {
            Some(cost) => spent.sum += cost,
            None => spent.unpriced = Some(model.to_owned()),
        }
    }

    /// # Errors
    /// The first budget, from here upwards, that lets nothing more be asked.
    pub(crate) fn check(&self) -> Result<(), AgentFault> {
        if let Some((budget, unknown)) = self.used_up() {
            return Err(AgentFault::OverBudget {
                agent: self.agent.clone(),
                budget,
                unknown,
            });
        }
        self.above.as_ref().map_or(Ok(()), |above| above.check())
    }

    /// The budget that is used up, in words; or that can't be held, and why.
    fn used_up(&self) -> Option<(String, Option<String>)> {
        let AgentBudget { turns, tokens, usd } = self.budget;
        if let Some(turns) = turns.filter(|turns| self.turns.load(Relaxed) >= *turns) {
            let word = if turns == 1 { "turn" } else { "turns" };
            return Some((format!("{turns} {word}"), None));
        }
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = spent.uncounted.as_ref();
        let untold = untold.map(|model| format!("the API told no usage of {model}"));
        if let Some(tokens) = tokens {
            let budget = format!("{tokens} tokens");
            if self.tokens.load(Relaxed) >= tokens {
                return Some((budget, None));
            }
            if untold.is_some() {
                return Some((budget, untold));
            }
        }
        let usd = usd?;
        let unpriced = spent.unpriced.as_ref();
        let unpriced = unpriced.map(|model| format!("`prices` has nothing of {model}"));
        #[expect(
            clippy::cast_precision_loss,
            reason = "15 digits are enough for a limit"
        )]
        let sum = spent.sum as f64 / USD;
        let unknown = untold.or(unpriced);
        (sum >= usd || unknown.is_some())
            .then(|| (format!("{usd} USD"), unknown.filter(|_| sum < usd)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::Usage;

    fn usage(tokens: u64) -> Tokens {
        let usage = Usage {
            input: tokens,
            ..Usage::default()
        };
        usage.into()
    }

    /// FAULTS 103.
    #[test]
    fn what_is_used_below_counts_above() {
        let tokens = |most| AgentBudget {
            tokens: Some(most),
            ..AgentBudget::default()
        };
        let above = Arc::new(Purse::new("lead", tokens(100), None));
        let below = Purse::new("expert", tokens(60), Some(Arc::clone(&above)));
        below.take("m", usage(50), None);
        assert_eq!(below.check(), Ok(()));
        above.take("m", usage(50), None);
        let Err(AgentFault::OverBudget { agent, budget, .. }) = below.check() else {
            panic!("nothing is left above");
        };
        assert_eq!((agent.as_str(), budget.as_str()), ("lead", "100 tokens"));
    }

    #[test]
    fn dollars_are_counted_by_price() {
        let budget = AgentBudget {
            usd: Some(0.01),
            ..AgentBudget::default()
        };
        let price = Price {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: None,
            cache_write: None,
        };
        let purse = Purse::new("a", budget, None);
        purse.take("m", usage(3_333), Some(&price));
        assert_eq!(purse.check(), Ok(()));
        purse.take("m", usage(1), Some(&price));
        assert!(purse.check().is_err());
        let unknown = Purse::new("a", budget, None);
        unknown.take("m", usage(1), None);
        assert!(unknown.check().is_err());
    }

    /// A budget that nobody can count is not held by counting nothing.
    #[test]
    fn what_is_not_told_ends_a_budget_that_needs_it() {
        let why = |budget: AgentBudget| {
            let above = Arc::new(Purse::new("lead", budget, None));
            let purse = Purse::new("a", AgentBudget::default(), Some(above));
            purse.take("m", Tokens(None), None);
            match purse.check() {
                Ok(()) => None,
                Err(AgentFault::OverBudget { unknown, .. }) => unknown,
                Err(other) => panic!("{other:?}"),
            }
        };
        let none = AgentBudget::default();
        let told = "the API told no usage of m";
        let (tokens, usd) = (Some(100), Some(1.0));
        assert_eq!(why(AgentBudget { tokens, ..none }).as_deref(), Some(told));
        assert_eq!(why(AgentBudget { usd, ..none }).as_deref(), Some(told));
        let turns = Some(2);
        assert_eq!(why(AgentBudget { turns, ..none }), None);
    }
}
