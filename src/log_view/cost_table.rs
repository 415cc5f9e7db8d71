//! What agents used as a table for people.

use std::time::Duration;

use crate::log_view::cost::{AgentCost, Cost};
use crate::log_view::table::{left, right, row_name, rows};
use toolq_core::text::format_duration;
use toolq_core::types::{Prices, dollars};

impl Cost {
    /// A row for each agent and one for all, without a line break at the end.
    pub fn table(&self, prices: &Prices, color: bool) -> String {
        let mut agents = self.agents(prices);
        if agents.is_empty() {
            return "no agents".to_owned();
        }
        if agents.len() > 1 {
            agents.push(self.total(prices));
        }
        let cells = |of: fn(&AgentCost) -> String| agents.iter().map(of).collect::<Vec<_>>();
        let mut columns = vec![
            left(
                "agent",
                cells(|agent| row_name(agent.agent_name.as_deref())),
            ),
            right("turns", &cells(|agent| agent.turns_used.to_string())),
            right("input", &cells(|agent| count(agent.input_tokens))),
            right("output", &cells(|agent| count(agent.output_tokens))),
        ];
        // A column that says nothing is left out.
        if agents.iter().any(|agent| agent.cache_read_tokens > Some(0)) {
            let cells = cells(|agent| count(agent.cache_read_tokens));
            columns.push(right("cache read", &cells));
        }
        if agents
            .iter()
            .any(|agent| agent.cache_write_tokens > Some(0))
        {
            let cells = cells(|agent| count(agent.cache_write_tokens));
            columns.push(right("cache write", &cells));
        }
        columns.push(right(
            "took",
            &cells(|agent| format_duration(Duration::from_millis(agent.duration_ms))),
        ));
        columns.push(left(
            "cost",
            cells(|agent| {
                agent
                    .estimated_cost_usd
                    .map_or_else(|| "unknown".to_owned(), dollars)
            }),
        ));
        rows(&columns, color)
    }
}

fn count(tokens: Option<u64>) -> String {
    tokens.map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string())
}
