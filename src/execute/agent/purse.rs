//! What a call of an agent has used of its budget. What the agents that it calls use counts, too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{AgentBudget, AgentFault, PicoUsd, Price, Usage};

/// Picodollars of a dollar.
const USD: f64 = 1e12;

/// A budget and what is used of it.
#[derive(Debug)]
pub(in crate::execute) struct Purse {
    agent: String,
    budget: AgentBudget,
    turns: AtomicU64,
    tokens: AtomicU64,
    usd: Mutex<Spent>,
    above: Option<Arc<Purse>>,
}

#[derive(Debug, Default)]
struct Spent {
    sum: PicoUsd,
    /// The model of an answer that has no known price.
    unpriced: Option<String>,
}

impl Purse {
    /// The full purse of an agent, below that of the agent that called it.
    pub(in crate::execute) fn new(
        agent: &str,
        budget: AgentBudget,
        above: Option<Arc<Purse>>,
    ) -> Self {
        Self {
            agent: agent.to_owned(),
            budget,
            turns: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            usd: Mutex::default(),
            above,
        }
    }

    /// Counts an answer of `model`, here and above.
    pub(super) fn take(&self, model: &str, usage: &Usage, price: Option<&Price>) {
        self.turns.fetch_add(1, Relaxed);
        self.tokens.fetch_add(usage.total(), Relaxed);
        let mut spent = self.usd.lock().unwrap_or_else(PoisonError::into_inner);
        match price.and_then(|price| price.of(usage)) {
            Some(cost) => spent.sum += cost,
            None => spent.unpriced = Some(model.to_owned()),
        }
        drop(spent);
        if let Some(above) = &self.above {
            above.take(model, usage, price);
        }
    }

    /// # Errors
    /// The first budget, from here upwards, that lets nothing more be asked.
    pub(super) fn check(&self) -> Result<(), AgentFault> {
        if let Some(budget) = self.used_up() {
            return Err(AgentFault::OverBudget {
                agent: self.agent.clone(),
                budget,
            });
        }
        self.above.as_ref().map_or(Ok(()), |above| above.check())
    }

    /// The budget that is used up, in words.
    fn used_up(&self) -> Option<String> {
        let over = |limit: Option<u64>, used: &AtomicU64| {
            limit.filter(|limit| used.load(Relaxed) >= *limit)
        };
        if let Some(turns) = over(self.budget.turns, &self.turns) {
            let word = if turns == 1 { "turn" } else { "turns" };
            return Some(format!("{turns} {word}"));
        }
        if let Some(tokens) = over(self.budget.tokens, &self.tokens) {
            return Some(format!("{tokens} tokens"));
        }
        let usd = self.budget.usd?;
        let spent = self.usd.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = &spent.unpriced {
            return Some(format!(
                "{usd} USD (of which nobody knows how much is left, since `prices` has nothing of {model})"
            ));
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "15 digits are enough for a limit"
        )]
        let spent = spent.sum as f64 / USD;
        (spent >= usd).then(|| format!("{usd} USD"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(tokens: u64) -> Usage {
        Usage {
            input: tokens,
            ..Usage::default()
        }
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
        below.take("m", &usage(50), None);
        assert_eq!(below.check(), Ok(()));
        above.take("m", &usage(50), None);
        let Err(AgentFault::OverBudget { agent, budget }) = below.check() else {
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
        purse.take("m", &usage(3_333), Some(&price));
        assert_eq!(purse.check(), Ok(()));
        purse.take("m", &usage(1), Some(&price));
        assert!(purse.check().is_err());
        let unknown = Purse::new("a", budget, None);
        unknown.take("m", &usage(1), None);
        assert!(unknown.check().is_err());
    }
}
