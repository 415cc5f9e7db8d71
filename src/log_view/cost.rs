use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::take;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use toolq_core::types::{PicoUsd, Prices, Tokens, usd};
use toolq_log::{Damage, Kind, Record, SessionStart, is_cut_short};

/// What agents used, by agent and by the model that answered, over as many logs as are read.
#[derive(Debug, Default)]
pub struct Cost {
    agents: BTreeMap<Box<str>, Used>,
    /// Calls of agents with which a run may still go on, by their `tool_call`.
    open: HashMap<Uuid, Open>,
}

/// What one call took so far.
#[derive(Debug)]
struct Open {
    agent: Box<str>,
    used: Used,
}

/// What one agent used.
#[derive(Debug, Clone, Default)]
struct Used {
    /// By model; the empty name is an answer that has none.
    usage: BTreeMap<Box<str>, Tokens>,
    turns: u64,
    ms: u64,
}

/// An agent in numbers. Tokens are `None` where an API did not count those of an answer.
#[derive(Debug, Serialize)]
pub struct AgentCost {
    /// Its name; `None` for all agents together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Tokens that it read, and neither from a cache nor into one.
    pub input_tokens: Option<u64>,
    /// Tokens that it wrote.
    pub output_tokens: Option<u64>,
    /// Tokens that it read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens that it read and put into a cache.
    pub cache_write_tokens: Option<u64>,
    /// US dollars with every digit; `None` where it has tokens without a price.
    #[serde(serialize_with = "number")]
    pub estimated_cost_usd: Option<PicoUsd>,
    /// Answers of models.
    pub turns_used: u64,
    /// Of its calls that have a result, one after the other.
    pub duration_ms: u64,
}

#[derive(Deserialize)]
struct ResponseFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: Tokens,
}

#[derive(Deserialize)]
struct ResultFields<'a> {
    /// Only of an agent.
    #[serde(borrow)]
    agent_name: Option<Cow<'a, str>>,
    duration_ms: u64,
    status: Cow<'a, str>,
    #[serde(default)]
    turns_used: u64,
    #[serde(borrow, default)]
    usage: BTreeMap<Cow<'a, str>, Tokens>,
    /// The part of it that no answer on record took.
    #[serde(borrow, default)]
    lost: BTreeMap<Cow<'a, str>, Tokens>,
}

impl Cost {
    /// Takes the next record of a log.
    ///
    /// # Errors
    /// Its metadata is not that of its type.
    pub fn take(&mut self, record: &Record) -> Result<(), Damage> {
        match &record.kind {
            // A session that resumes goes on with agents, whose answers so far it doesn't hear again.
            Kind::Session => {
                let session: SessionStart = record.metadata()?;
                let open = session.resumes.is_none().then(|| take(&mut self.open));
                self.close(open.unwrap_or_default());
            }
            Kind::ModelResponse => {
                let found: ResponseFields<'_> = record.metadata()?;
                let call = record.parent.unwrap_or_default();
                let open = self.open.entry(call).or_insert_with(|| Open {
                    agent: found.tool_name.into(),
                    used: Used::default(),
                });
                let model = found.model.unwrap_or_default().into();
                *open.used.usage.entry(model).or_default() += found.usage;
                open.used.turns += 1;
            }
            kind if kind.ends_call() => {
                let found: ResultFields<'_> = record.metadata()?;
                if let Some(agent) = found.agent_name {
                    let call = record.parent.unwrap_or_default();
                    let heard = self.open.remove(&call).map(|mut open| {
                        open.used.count(found.lost);
                        open.used
                    });
                    let models = found.usage.into_iter();
                    // It has the agent's own name. Its sum is what this run came to: each answer stands for itself.
                    let mut used = heard.unwrap_or_else(|| Used {
                        usage: models.map(|(model, used)| (model.into(), used)).collect(),
                        turns: found.turns_used,
                        ms: 0,
                    });
                    used.ms = used.ms.saturating_add(found.duration_ms);
                    let agent = agent.into();
                    if *kind == Kind::ToolResult && !is_cut_short(&found.status) {
                        self.add(agent, used);
                    } else {
                        self.open.insert(call, Open { agent, used });
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A log has no more records: what was answered is paid for, with or without a result.
    pub fn end_of_log(&mut self) {
        let open = take(&mut self.open);
        self.close(open);
    }

    fn close(&mut self, open: HashMap<Uuid, Open>) {
        for (_, Open { agent, used }) in open {
            self.add(agent, used);
        }
    }

    fn add(&mut self, agent: Box<str>, used: Used) {
        self.agents.entry(agent).or_default().add(used);
    }

    /// Each agent by name.
    pub fn agents(&self, prices: &Prices) -> Vec<AgentCost> {
        let agents = self.agents.iter();
        agents
            .map(|(name, used)| used.cost(Some(name), prices))
            .collect()
    }

    /// All agents together.
    pub fn total(&self, prices: &Prices) -> AgentCost {
        let mut total = Used::default();
        for used in self.agents.values() {
            total.add(used.clone());
        }
        total.cost(None, prices)
    }

    /// The models whose tokens have no price.
    pub fn unpriced(&self, prices: &Prices) -> BTreeSet<&str> {
        self.models(|model, tokens| tokens.0.is_some() && prices.cost(model, tokens).is_none())
    }

    /// The models whose API did not say how many tokens an answer took.
    pub fn uncounted(&self) -> BTreeSet<&str> {
        self.models(|_, tokens| tokens.0.is_none())
    }

    fn models(&self, are: impl Fn(&str, &Tokens) -> bool) -> BTreeSet<&str> {
        let usage = self.agents.values().flat_map(|used| &used.usage);
        let such = usage.filter(|(model, tokens)| are(model, tokens));
        such.map(|(model, _)| &**model).collect()
    }

    /// `{"agents":[…],"total":{…}}` on one line.
    pub fn json(&self, prices: &Prices) -> String {
        #[derive(Serialize)]
        struct Json {
            agents: Vec<AgentCost>,
            total: AgentCost,
        }
        let json = Json {
            agents: self.agents(prices),
            total: self.total(prices),
        };
        // Texts and numbers: there is nothing in it that JSON has no form for.
        serde_json::to_string(&json).unwrap_or_default()
    }
}

impl Used {
    fn add(&mut self, more: Self) {
        self.count(more.usage);
        self.turns = self.turns.saturating_add(more.turns);
        self.ms = self.ms.saturating_add(more.ms);
    }

    fn count(&mut self, usage: BTreeMap<impl Into<Box<str>>, Tokens>) {
        for (model, tokens) in usage {
            *self.usage.entry(model.into()).or_default() += tokens;
        }
    }

    fn cost(&self, name: Option<&str>, prices: &Prices) -> AgentCost {
        let mut all = Tokens::default();
        let mut cost = Some(0);
        for (model, usage) in &self.usage {
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
            duration_ms: self.ms,
        }
    }
}

/// An amount as a JSON number with all its digits, which a float does not have.
#[expect(clippy::ref_option, reason = "serde hands out references")]
fn number<S: serde::Serializer>(amount: &Option<PicoUsd>, to: S) -> Result<S::Ok, S::Error> {
    let digits = amount.and_then(|amount| RawValue::from_string(usd(amount)).ok());
    digits.serialize(to)
}
