//! Collects the tokens and costs of agents for `toolq log cost`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::take;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use toolq_core::types::{PicoUsd, PriceTable, ReportedUsage, Status, format_usd};
use toolq_log::{Corruption, Record, RecordKind, SessionRecord};

/// Adds up the usage of agents, by agent and by the model that responded, over any number of logs.
#[derive(Debug, Default)]
pub struct CostCollector {
    agents: BTreeMap<Box<str>, AgentTotals>,
    /// Agents' calls that a resumed run could continue, by their `tool_call` records.
    open_calls: HashMap<Uuid, OpenAgentCall>,
}

/// The usage of one call so far.
#[derive(Debug)]
struct OpenAgentCall {
    agent: Box<str>,
    totals: AgentTotals,
}

/// The usage of one agent.
#[derive(Debug, Clone, Default)]
struct AgentTotals {
    /// Tokens by model; the empty name is for responses that don't name their model.
    tokens_by_model: BTreeMap<Box<str>, ReportedUsage>,
    turns: u64,
    duration_ms: u64,
}

/// The usage and cost of an agent. Token counts are `None` if an API didn't report them for a response.
#[derive(Debug, Serialize)]
pub struct AgentCost {
    /// The agent's name; `None` for all agents together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Input tokens that bypass the cache.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read_tokens: Option<u64>,
    /// Input tokens written to the cache.
    pub cache_write_tokens: Option<u64>,
    /// Exact cost in US dollars; `None` if some tokens have no known price.
    #[serde(serialize_with = "number")]
    pub estimated_cost_usd: Option<PicoUsd>,
    /// Number of model responses.
    pub turns_used: u64,
    /// Sum of the durations of its calls that have a result.
    pub duration_ms: u64,
}

#[derive(Deserialize)]
struct ModelResponseFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: ReportedUsage,
}

#[derive(Deserialize)]
struct AgentResultFields<'a> {
    /// Only in results of agents.
    #[serde(borrow)]
    agent_name: Option<Cow<'a, str>>,
    duration_ms: u64,
    status: Status,
    #[serde(default)]
    turns_used: u64,
    #[serde(borrow, default)]
    usage: BTreeMap<Cow<'a, str>, ReportedUsage>,
    /// The part of `usage` that isn't covered by recorded responses.
    #[serde(borrow, default)]
    lost: BTreeMap<Cow<'a, str>, ReportedUsage>,
}

impl CostCollector {
    /// Adds the next record of a log.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn add_record(&mut self, record: &Record) -> Result<(), Corruption> {
        match &record.kind {
            // A resuming session continues the agents' calls, and doesn't record their earlier responses again.
            RecordKind::Session => {
                let session: SessionRecord = record.parse_metadata()?;
                let open = session
                    .resumes
                    .is_none()
                    .then(|| take(&mut self.open_calls));
                self.close_calls(open.unwrap_or_default());
            }
            RecordKind::ModelResponse => {
                let found: ModelResponseFields<'_> = record.parse_metadata()?;
                let call = record.parent.unwrap_or_default();
                let open = self
                    .open_calls
                    .entry(call)
                    .or_insert_with(|| OpenAgentCall {
                        agent: found.tool_name.into(),
                        totals: AgentTotals::default(),
                    });
                let model = found.model.unwrap_or_default().into();
                *open.totals.tokens_by_model.entry(model).or_default() += found.usage;
                open.totals.turns += 1;
            }
            kind if kind.ends_call() => {
                let found: AgentResultFields<'_> = record.parse_metadata()?;
                if let Some(agent) = found.agent_name {
                    let call = record.parent.unwrap_or_default();
                    let recorded = self.open_calls.remove(&call).map(|mut open| {
                        open.totals.add_tokens(found.lost);
                        open.totals
                    });
                    let models = found.usage.into_iter();
                    // Only a result has the name of the agent itself. But its usage covers only its own run, so the sum
                    // of the recorded responses is preferred.
                    let mut used = recorded.unwrap_or_else(|| AgentTotals {
                        tokens_by_model: models.map(|(model, used)| (model.into(), used)).collect(),
                        turns: found.turns_used,
                        duration_ms: 0,
                    });
                    used.duration_ms = used.duration_ms.saturating_add(found.duration_ms);
                    let agent = agent.into();
                    if *kind == RecordKind::ToolResult && !found.status.is_interrupted() {
                        self.add_totals(agent, used);
                    } else {
                        self.open_calls.insert(
                            call,
                            OpenAgentCall {
                                agent,
                                totals: used,
                            },
                        );
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a log. Responses count even if their call has no result, because they were paid for.
    pub fn finish_log(&mut self) {
        let open = take(&mut self.open_calls);
        self.close_calls(open);
    }

    fn close_calls(&mut self, open: HashMap<Uuid, OpenAgentCall>) {
        for (
            _,
            OpenAgentCall {
                agent,
                totals: used,
            },
        ) in open
        {
            self.add_totals(agent, used);
        }
    }

    fn add_totals(&mut self, agent: Box<str>, used: AgentTotals) {
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
        let mut total = AgentTotals::default();
        for used in self.agents.values() {
            total.merge(used.clone());
        }
        total.to_cost(None, prices)
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
        // Can't fail: strings and numbers always have a JSON form.
        serde_json::to_string(&json).unwrap_or_default()
    }
}

impl AgentTotals {
    fn merge(&mut self, more: Self) {
        self.add_tokens(more.tokens_by_model);
        self.turns = self.turns.saturating_add(more.turns);
        self.duration_ms = self.duration_ms.saturating_add(more.duration_ms);
    }

    fn add_tokens(&mut self, usage: BTreeMap<impl Into<Box<str>>, ReportedUsage>) {
        for (model, tokens) in usage {
            *self.tokens_by_model.entry(model.into()).or_default() += tokens;
        }
    }

    fn to_cost(&self, name: Option<&str>, prices: &PriceTable) -> AgentCost {
        let mut all = ReportedUsage::default();
        let mut cost = Some(0);
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
