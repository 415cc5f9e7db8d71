use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::types::template::Template;
use crate::types::usage::Tokens;

/// `agent`: a model that works on a task with tools of the same file, turn by turn, until it has an answer.
#[derive(Debug, Clone)]
pub struct AgentBacking {
    /// What the endpoint speaks.
    pub api: Api,
    /// Where requests go: a server, or a path of one that ends in the version or is whole.
    pub endpoint: Template,
    /// Who asks.
    pub api_key: Option<Template>,
    /// Who answers.
    pub model: Template,
    /// Who is asked once in its place, where it is overloaded.
    pub fallback_model: Option<Template>,
    /// What it is told before all.
    pub system: Option<Template>,
    /// Its task; the input as JSON where there is none.
    pub prompt: Option<Template>,
    /// The names of the tools that it may call.
    pub tools: Vec<String>,
    /// Answers after which it has to be done.
    pub max_turns: u32,
    /// Tokens of one answer.
    pub max_tokens: u32,
    /// Whether answers are asked for as streams, whose calls start while the rest is still spoken.
    pub stream: bool,
    /// What it, and the agents that it calls, may use.
    pub budget: AgentBudget,
    /// How many agents may call each other in a row, itself counted.
    pub max_depth: u32,
}

/// The wire form of an agent's API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Api {
    /// Anthropic's Messages API.
    #[default]
    #[serde(rename = "anthropic")]
    Anthropic,
    /// `OpenAI`'s chat completions, which many servers speak.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
}

/// What one call of an agent may use; none is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AgentBudget {
    /// Answers of models.
    pub turns: Option<u64>,
    /// Tokens of all kinds.
    pub tokens: Option<u64>,
    /// US dollars, by `prices`.
    pub usd: Option<f64>,
}

/// A tool that toolq has itself.
#[derive(Debug, Clone)]
pub enum Builtin {
    /// `attempt_completion`: its `result` is the answer, and nothing behind it runs.
    AttemptCompletion,
    /// `new_task`: hands `task` to one of these agents.
    NewTask(Vec<std::sync::Arc<crate::types::tool::Tool>>),
}

/// One answer of a model to an agent.
#[derive(Debug, Clone)]
pub struct Response {
    /// As it came; of a stream, what its events add up to.
    pub body: Box<RawValue>,
    /// The message in it, as it is sent back.
    pub message: Box<RawValue>,
    /// The text for whoever called the agent.
    pub text: String,
    /// Why it ended.
    pub stop: Stop,
    /// The API's word for that, where toolq knows none such; it is taken for [`Stop::Done`].
    pub unknown_stop: Option<String>,
    /// Who answered, where the answer says so.
    pub model: Option<String>,
    /// The tokens that it took.
    pub usage: Tokens,
}

/// Why a model's answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is complete.
    Done,
    /// It takes a rest, and goes on when it is sent back as it is.
    Paused,
    /// It has as many tokens as it may.
    MaxTokens,
    /// There is no room for more in the model's context.
    ContextFull,
    /// The model declines, or its answer was withheld.
    Refused,
}

/// What a call of an agent used, without what the agents that it called used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentUse {
    /// The agent, which is not the called tool's name where `new_task` called it.
    pub agent_name: String,
    /// Answers of models.
    pub turns: u64,
    /// Calls that it asked for, rejected ones included.
    pub calls: u64,
    /// Those of them that were rejected, so that the model had to correct itself.
    pub corrections: u64,
    /// It was not done within its turns.
    pub unfinished: bool,
    /// Tokens by the model that answered.
    pub usage: BTreeMap<String, Tokens>,
    /// Those of them that were told of answers that broke off.
    pub lost: BTreeMap<String, Tokens>,
}

impl AgentUse {
    /// Nothing yet.
    pub fn of(agent_name: impl Into<String>) -> Self {
        Self {
            agent_name: agent_name.into(),
            ..Self::default()
        }
    }

    /// Tokens of all kinds and models; none where they are not known of all answers.
    pub fn tokens(&self) -> Option<u64> {
        let mut totals = self.usage.values().map(Tokens::total);
        totals.try_fold(0_u64, |sum, total| Some(sum.saturating_add(total?)))
    }

    /// Counts what `model` is known to have taken for an answer that broke off.
    pub fn lose(&mut self, model: &str, tokens: Tokens) {
        *self.usage.entry(model.to_owned()).or_default() += tokens;
        *self.lost.entry(model.to_owned()).or_default() += tokens;
    }
}

/// Why an agent has no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentFault {
    /// Its API refused the request: a status, where it came with one, and what it said.
    Api {
        /// Of HTTP; none for an error in a stream that had begun well.
        status: Option<u16>,
        /// The API's own word for it, and its message.
        said: String,
        /// How long it asks to wait.
        wait: Option<Duration>,
    },
    /// Its endpoint is no URL, so that nothing was asked.
    NoEndpoint {
        /// As it stands in the file.
        declared: String,
        /// With its variables.
        value: String,
    },
    /// The answer is none that the API documents: why.
    Unreadable(String),
    /// The answer broke off when calls of it had started, so that it can't be asked for again: why.
    BrokeOff(String),
    /// The model declined.
    Refused,
    /// An answer was cut off at `max_tokens`.
    MaxTokens,
    /// The conversation is longer than the model's context.
    ContextFull,
    /// What the agent, or one that called it, may use is used up, or may be.
    OverBudget {
        /// The agent whose budget it is.
        agent: String,
        /// The budget, in words: `20000 tokens`.
        budget: String,
        /// Why nobody knows what is left of it, where that is so.
        unknown: Option<String>,
    },
    /// The session log takes no more records: why.
    LogRefused(String),
}
