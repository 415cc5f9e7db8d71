//! The table of `toolq log cost`.

use std::time::Duration;

use crate::log_view::cost::{AgentCost, CostCollector};
use crate::log_view::table::{left_aligned, render_rows, right_aligned, row_name};
use toolq_core::text::format_duration;
use toolq_core::types::{PriceTable, format_dollars};

impl CostCollector {
    /// Formats a row per agent and one for all of them, without a trailing newline.
    pub fn to_table(&self, prices: &PriceTable, color: bool) -> String {
        let mut agents = self.agents(prices);
        if agents.is_empty() {
            return "no agents".to_owned();
        }
        if agents.len() > 1 {
            agents.push(self.total(prices));
        }
        let cells = |of: fn(&AgentCost) -> String| agents.iter().map(of).collect::<Vec<_>>();
        let mut columns = vec![
            left_aligned(
                "agent",
                cells(|agent| row_name(agent.agent_name.as_deref())),
            ),
            right_aligned("turns", cells(|agent| agent.turns_used.to_string())),
            right_aligned("input", cells(|agent| token_cell(agent.input_tokens))),
            right_aligned("output", cells(|agent| token_cell(agent.output_tokens))),
        ];
        // Columns that would be all zeros are left out.
        if agents.iter().any(|agent| agent.cache_read_tokens > Some(0)) {
            let cells = cells(|agent| token_cell(agent.cache_read_tokens));
            columns.push(right_aligned("cache read", cells));
        }
        if agents
            .iter()
            .any(|agent| agent.cache_write_tokens > Some(0))
        {
            let cells = cells(|agent| token_cell(agent.cache_write_tokens));
            columns.push(right_aligned("cache write", cells));
        }
        columns.push(right_aligned(
            "took",
            cells(|agent| format_duration(Duration::from_millis(agent.duration_ms))),
        ));
        columns.push(left_aligned(
            "cost",
            cells(|agent| match agent.estimated_cost_usd {
                Some(cost) => format_dollars(cost),
                None if agent.turns_used == 0 => "–".to_owned(),
                None => "unknown".to_owned(),
            }),
        ));
        render_rows(&columns, color)
    }
}

fn token_cell(tokens: Option<u64>) -> String {
    tokens.map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string())
}
