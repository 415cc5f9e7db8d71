//! Agents: their declaration, the responses of their models, and how they fail.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::types::dialect::Api;
use crate::types::ending::TransportError;
use crate::types::template::Template;
use crate::types::usage::ReportedUsage;

/// `agent`: a model that works on a task turn by turn, with tools of the same file, until it has an answer.
#[derive(Debug, Clone)]
pub struct AgentBacking {
    /// The wire format of the endpoint.
    pub api: Api,
    /// URL of the API: a server, a path that ends in the version, or the full request path. What is missing is
    /// appended.
    pub endpoint: Template,
    /// API key to authenticate with.
    pub api_key: Option<Template>,
    /// Model to use.
    pub model: Template,
    /// Model to try once when `model` is overloaded.
    pub fallback_model: Option<Template>,
    /// System prompt.
    pub system: Option<Template>,
    /// The agent's task. Without one, the task is the input as JSON.
    pub prompt: Option<Template>,
    /// Names of the tools that the agent may call.
    pub tools: Vec<String>,
    /// Maximum number of model responses before the agent must finish.
    pub max_turns: u32,
    /// Maximum number of tokens in one response.
    pub max_tokens: u32,
    /// Whether requests mark what the API is to cache.
    pub cache: bool,
    /// Additional headers, with lowercase names.
    pub headers: Vec<(String, Template)>,
    /// Additional members of the request body.
    pub extra_body: Map<String, Value>,
    /// What the agent and the agents it calls may consume.
    pub budget: AgentBudget,
    /// How many agents may be nested, counting this one.
    pub max_depth: u32,
}

impl AgentBacking {
    /// Returns all templates that are filled in for a request to the model.
    pub fn templates(&self) -> Vec<&Template> {
        let optional = [
            &self.api_key,
            &self.fallback_model,
            &self.system,
            &self.prompt,
        ];
        let headers = self.headers.iter().map(|(_, template)| template);
        [&self.endpoint, &self.model]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(headers)
            .collect()
    }
}

/// Budget of one agent call. `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AgentBudget {
    /// Model responses.
    pub turns: Option<u64>,
    /// Tokens of all kinds.
    pub tokens: Option<u64>,
    /// US dollars, computed from `prices`.
    pub usd: Option<f64>,
}

/// One response of an agent's model.
#[derive(Debug, Clone)]
pub struct ModelResponse {
    /// The body as received. For a stream, assembled from its events.
    pub body: Box<RawValue>,
    /// The message in the body, in the form in which it is sent back.
    pub message: Box<RawValue>,
    /// The text of the message, which the agent's caller may receive.
    pub text: String,
    /// Why the response ended.
    pub stop_reason: StopReason,
    /// The API's stop reason, if toolq doesn't know it. Such a reason is treated as [`StopReason::Complete`].
    pub unknown_stop_reason: Option<String>,
    /// The id of the response, if it has one.
    pub message_id: Option<String>,
    /// The model that responded, if the response names it.
    pub model: Option<String>,
    /// Whose API responded: the name that OpenTelemetry has for it.
    pub provider: &'static str,
    /// The tokens that the response cost, if reported.
    pub usage: ReportedUsage,
}

/// Why a model's response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The response is complete.
    Complete,
    /// The model paused. It continues when the message is sent back unchanged.
    Paused,
    /// The response reached its token limit.
    MaxTokens,
    /// The model's context window is full.
    ContextFull,
    /// The model declined, or its response was withheld.
    Refused,
}

/// How many models the usage of an agent tells apart.
const MAX_MODELS: usize = 32;

/// What stands for the models beyond that.
const OTHER_MODELS: &str = "(other)";

/// What one agent call consumed, excluding the agents that it called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentUsage {
    /// The agent's name. It differs from the called tool's name if `new_task` called the agent.
    pub agent_name: String,
    /// Model responses.
    pub turns: u64,
    /// Calls that the agent made, including rejected ones.
    pub requested_calls: u64,
    /// The tools that these calls named, in call order.
    pub tools_called: Vec<String>,
    /// How many of these were rejected, so that the model had to correct itself.
    pub rejected_calls: u64,
    /// Whether the agent didn't finish within its turns.
    pub ran_out_of_turns: bool,
    /// Tokens by the model that responded.
    pub usage: BTreeMap<String, ReportedUsage>,
}

impl AgentUsage {
    /// Returns usage with all counters at zero.
    pub fn new(agent_name: impl Into<String>) -> Self {
        Self {
            agent_name: agent_name.into(),
            ..Self::default()
        }
    }

    /// Adds the tokens of a response. An API may name another model with each, so those beyond a number are counted together.
    pub fn add_tokens(&mut self, model: &str, tokens: ReportedUsage) {
        let is_told_apart = self.usage.contains_key(model) || self.usage.len() < MAX_MODELS;
        let model = if is_told_apart { model } else { OTHER_MODELS };
        *self.usage.entry(model.to_owned()).or_default() += tokens;
    }

    /// Returns the tokens of all kinds and models, or `None` if a response didn't report its usage.
    pub fn total_tokens(&self) -> Option<u64> {
        self.usage
            .values()
            .map(ReportedUsage::total)
            .try_fold(0_u64, |sum, total| Some(sum.saturating_add(total?)))
    }
}

/// Why an agent failed to give an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentFailure {
    /// The API rejected the request.
    ApiError {
        /// The HTTP status, or `None` for an error that came with status 200.
        status: Option<u16>,
        /// The API's name for the error, and its message.
        message: String,
        /// How long the API asks clients to wait.
        retry_after: Option<Duration>,
    },
    /// The API couldn't be reached, or sent no complete response.
    Unreachable(TransportError),
    /// The endpoint isn't a URL, so nothing was sent.
    InvalidEndpoint {
        /// As written in tools.yaml.
        declared: String,
        /// With its environment variables filled in.
        resolved: String,
    },
    /// The response doesn't match the API's documented format. The text says why.
    UnreadableResponse(String),
    /// The model declined.
    Refused,
    /// A response was cut off at `max_tokens`.
    MaxTokens,
    /// The conversation exceeds the model's context window.
    ContextFull,
    /// A budget of the agent, or of an agent above it, is used up or may be.
    OverBudget {
        /// The agent that the budget belongs to.
        agent: String,
        /// The budget as text: `20000 tokens`.
        budget: String,
        /// Why the remaining budget is unknown, if it is.
        unknown_usage_reason: Option<String>,
    },
    /// The session log refused a record. The text says why.
    LogRefused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_beyond_a_number_are_counted_together() {
        let mut usage = AgentUsage::new("a");
        let tokens = ReportedUsage::default();
        for number in 0..100 {
            usage.add_tokens(&format!("model-{number}"), tokens);
            usage.add_tokens("model-0", tokens);
        }
        assert_eq!(usage.usage.len(), MAX_MODELS + 1);
        assert!(usage.usage.contains_key(OTHER_MODELS));
    }
}
