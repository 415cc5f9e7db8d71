//! What all agents of a run did.

use toolq_core::text::format_count;
use toolq_core::types::{Event, PicoUsd, PriceTable, ReportedUsage, format_dollars};

/// Counts what agents do, and what it costs.
pub(super) struct AgentTotals {
    prices: PriceTable,
    /// Whether one of them sent a request to its model.
    has_requests: bool,
    /// Number of responses that they received.
    turns: usize,
    /// Whether a model reported what a response cost.
    has_cost: bool,
    /// Cost of the models' responses; `None` if the price of one is unknown.
    cost: Option<PicoUsd>,
}

impl AgentTotals {
    pub(super) fn new(prices: PriceTable) -> Self {
        Self {
            prices,
            has_requests: false,
            turns: 0,
            has_cost: false,
            cost: Some(0),
        }
    }

    pub(super) fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentProgress { .. } => self.has_requests = true,
            Event::AgentMessage {
                response: Some(response),
                ..
            } => {
                self.turns += 1;
                let model = response.model.as_deref().unwrap_or_default();
                self.add_cost(model, &response.usage);
            }
            _ => {}
        }
    }

    /// Formats the totals as `agents: 2 turns, $0.0105`, or returns `None` if no agent ran.
    pub(super) fn label(&self) -> Option<String> {
        self.has_requests.then(|| {
            format!(
                "agents: {}{}",
                format_count(self.turns as u64, "turn"),
                self.cost_label()
            )
        })
    }

    /// Formats the cost as `, $0.0105`, or as nothing if tools.yaml has no `prices` or no model responded.
    fn cost_label(&self) -> String {
        match self.cost {
            _ if self.prices.0.is_empty() || !self.has_cost => String::new(),
            Some(cost) => format!(", {}", format_dollars(cost)),
            None => ", cost unknown".to_owned(),
        }
    }

    fn add_cost(&mut self, model: &str, tokens: &ReportedUsage) {
        self.has_cost = true;
        let cost = self.prices.cost(model, tokens);
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }
}
