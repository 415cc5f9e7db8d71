//! Collects the tokens and costs of agents for `toolq log cost`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::take;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::log_view::table::{left_aligned, render_rows, right_aligned, row_name};
use toolq_core::json::expect_json;
use toolq_core::text::{format_count, format_duration};
use toolq_core::types::{PicoUsd, PriceTable, ReportedUsage, format_dollars, format_usd};
use toolq_log::records::{CallEndRecord, ModelResponseRecord};
use toolq_log::{Corruption, Record, RecordKind};

/// Adds up the usage of agents, by agent and by the model that responded, over any number of logs.
#[derive(Debug, Default)]
pub struct CostCollector {
    agents: BTreeMap<Box<str>, AgentUsageTotals>,
    /// Agents' calls that a resumed run could continue, by their `tool_call` records.
    open_calls: HashMap<Uuid, OpenAgentCall>,
}

/// The usage of one call so far.
#[derive(Debug)]
struct OpenAgentCall {
    agent: Box<str>,
    totals: AgentUsageTotals,
}

/// The usage of one agent.
#[derive(Debug, Clone, Default)]
struct AgentUsageTotals {
    /// Tokens by model; the empty name is for responses that don't name their model.
    tokens_by_model: BTreeMap<Box<str>, ReportedUsage>,
    turns: u64,
    duration_ms: u64,
}

/// The usage and cost of an agent. Token counts are `None` if an API didn't report them for a response.
#[derive(Debug, Serialize)]
pub(crate) struct AgentCost {
    /// The agent's name; `None` for all agents together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Input tokens that bypass the cache.
    input_tokens: Option<u64>,
    /// Output tokens.
    output_tokens: Option<u64>,
    /// Input tokens read from the cache.
    cache_read_tokens: Option<u64>,
    /// Input tokens written to the cache.
    cache_write_tokens: Option<u64>,
    /// Exact cost in US dollars; `None` if some tokens have no known price, or if no model responded.
    #[serde(serialize_with = "number")]
    pub estimated_cost_usd: Option<PicoUsd>,
    /// Number of model responses.
    pub turns_used: u64,
    /// Sum of the durations of its calls that have a result.
    pub duration_ms: u64,
}

impl CostCollector {
    /// Adds the next record of a log.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn add_record(&mut self, record: &Record) -> Result<(), Corruption> {
        match &record.kind {
            RecordKind::Session => self.finish_log(),
            RecordKind::ModelResponse => {
                if let Some(call) = record.parent {
                    self.add_response(call, &record.parse_metadata()?);
                }
            }
            kind if kind.ends_call() => {
                if let Some(call) = record.parent {
                    self.add_call_end(call, kind, record.parse_metadata()?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_response(&mut self, call: Uuid, response: &ModelResponseRecord<'_>) {
        let new_call = || OpenAgentCall {
            agent: (&*response.tool_name).into(),
            totals: AgentUsageTotals::default(),
        };
        let open = self.open_calls.entry(call).or_insert_with(new_call);
        // The empty name is for responses that don't name their model.
        let model = response.model.as_deref().unwrap_or_default();
        let tokens = open.totals.tokens_by_model.entry(model.into());
        *tokens.or_default() += response.usage;
        open.totals.turns += 1;
    }

    fn add_call_end(&mut self, call: Uuid, kind: &RecordKind, end: CallEndRecord<'_>) {
        let is_final = *kind == RecordKind::ToolResult && !end.is_interrupted();
        let Some(used) = end.agent else { return };
        let recorded = self.open_calls.remove(&call).map(|open| open.totals);
        // Only a result has the name of the agent itself. But its usage covers only its own run, so the sum of the
        // recorded responses is preferred.
        let models = used.usage.into_iter();
        let mut totals = recorded.unwrap_or_else(|| AgentUsageTotals {
            tokens_by_model: models.map(|(model, used)| (model.into(), used)).collect(),
            turns: used.turns_used,
            duration_ms: 0,
        });
        totals.duration_ms = totals.duration_ms.saturating_add(end.duration_ms);
        let agent = used.agent_name.into();
        if is_final {
            self.add_totals(agent, totals);
        } else {
            self.open_calls
                .insert(call, OpenAgentCall { agent, totals });
        }
    }

    /// Ends a log. Responses count even if their call has no result, because they were paid for.
    pub fn finish_log(&mut self) {
        for (_, OpenAgentCall { agent, totals }) in take(&mut self.open_calls) {
            self.add_totals(agent, totals);
        }
    }

    fn add_totals(&mut self, agent: Box<str>, used: AgentUsageTotals) {
        self.agents.entry(agent).or_default().merge(used);
    }

    /// Returns the cost of each agent, sorted by name.
    pub fn agents(&self, prices: &PriceTable) -> Vec<AgentCost> {
        let agents = self.agents.iter();
        agents
            .map(|(name, used)| used.to_cost(Some(name), prices))
            .collect()
    }

    /// Returns the cost of all agents together.
    pub fn total(&self, prices: &PriceTable) -> AgentCost {
        let mut total = AgentUsageTotals::default();
        for used in self.agents.values() {
            total.merge(used.clone());
        }
        let cost = total.to_cost(None, prices);
        if self.agents.is_empty() {
            return AgentCost {
                estimated_cost_usd: Some(0),
                ..cost
            };
        }
        cost
    }

    /// `agents: 3 turns, 1204 tokens in, 90 out, $0.0123`. `None` without agents.
    pub(crate) fn summary(&self, prices: &PriceTable) -> Option<String> {
        if self.agents.is_empty() {
            return None;
        }
        let total = self.total(prices);
        let turns = format_count(total.turns_used, "turn");
        let mut parts = vec![format!("agents: {turns}")];
        if let (Some(input), Some(output)) = (total.input_tokens, total.output_tokens) {
            parts.push(format!("{input} tokens in, {output} out"));
        }
        parts.extend(total.estimated_cost_usd.map(format_dollars));
        Some(parts.join(", "))
    }

    /// Returns the models whose tokens have no price.
    pub fn unpriced_models(&self, prices: &PriceTable) -> BTreeSet<&str> {
        self.models_where(|model, tokens| {
            tokens.0.is_some() && prices.cost(model, tokens).is_none()
        })
    }

    /// Returns the models whose API didn't report the tokens of a response.
    pub fn uncounted_models(&self) -> BTreeSet<&str> {
        self.models_where(|_, tokens| tokens.0.is_none())
    }

    fn models_where(&self, is_wanted: impl Fn(&str, &ReportedUsage) -> bool) -> BTreeSet<&str> {
        let usage = self.agents.values().flat_map(|used| &used.tokens_by_model);
        let matching = usage.filter(|(model, tokens)| is_wanted(model, tokens));
        matching.map(|(model, _)| &**model).collect()
    }

    /// Formats the costs as one line: `{"agents":[…],"total":{…}}`.
    pub fn to_json(&self, prices: &PriceTable) -> String {
        #[derive(Serialize)]
        struct CostReportJson {
            agents: Vec<AgentCost>,
            total: AgentCost,
        }
        let json = CostReportJson {
            agents: self.agents(prices),
            total: self.total(prices),
        };
        expect_json(serde_json::to_string(&json))
    }
}

impl AgentUsageTotals {
    fn merge(&mut self, more: Self) {
        for (model, tokens) in more.tokens_by_model {
            *self.tokens_by_model.entry(model).or_default() += tokens;
        }
        self.turns = self.turns.saturating_add(more.turns);
        self.duration_ms = self.duration_ms.saturating_add(more.duration_ms);
    }

    fn to_cost(&self, name: Option<&str>, prices: &PriceTable) -> AgentCost {
        let mut all = ReportedUsage::default();
        let mut cost = (!self.tokens_by_model.is_empty()).then_some(0);
        for (model, usage) in &self.tokens_by_model {
            all += *usage;
            let price = prices.cost(model, usage);
            cost = cost
                .zip(price)
                .map(|(sum, price): (PicoUsd, _)| sum.saturating_add(price));
        }
        AgentCost {
            agent_name: name.map(str::to_owned),
            input_tokens: all.0.map(|all| all.input),
            output_tokens: all.0.map(|all| all.output),
            cache_read_tokens: all.0.map(|all| all.cache_read),
            cache_write_tokens: all.0.map(|all| all.cache_write),
            estimated_cost_usd: cost,
            turns_used: self.turns,
            duration_ms: self.duration_ms,
        }
    }
}

/// Serializes an amount as a JSON number with all its digits, which a float would lose.
#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn number<S: serde::Serializer>(
    amount: &Option<PicoUsd>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let digits = amount.and_then(|amount| RawValue::from_string(format_usd(amount)).ok());
    digits.serialize(serializer)
}

// The table of `toolq log cost`.

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
