//! The keys of the `agent` backing: a model with tools.

use schemars::JsonSchema;
use serde::Deserialize;

use serde_json::Value;

use crate::tools_file::keys::tool::JsonObject;
use crate::tools_file::spanned::{Field, SpannedTable};
use crate::types::Api;

/// A model that works on a task over several turns, with tools from this file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["endpoint", "model"]))]
pub struct AgentFile {
    /// API of the endpoint: `anthropic` (Messages API, the default) or `openai-chat` (chat completions).
    pub api: Field<Api>,
    /// Base URL of the API, such as `https://api.anthropic.com`. A path that ends in a version (`/v1`) or in the API's
    /// own path is kept.
    pub endpoint: Field<String>,
    /// API key, taken from the environment: `${ANTHROPIC_API_KEY}`. Masked in all output.
    pub api_key: Field<String>,
    /// Name of the model.
    pub model: Field<String>,
    /// Model to try once when `model` is overloaded.
    pub fallback_model: Field<String>,
    /// System prompt. Can't contain values from the input.
    pub system: Field<String>,
    /// The task: a template over the input. Default: the input as JSON.
    pub prompt: Field<String>,
    /// Tools of this file that the agent may call.
    pub tools: Field<Vec<Field<String>>>,
    /// Maximum number of model responses. Calls in the last one don't run. Default: 3.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_turns: Field<u32>,
    /// Maximum tokens of one model response. Default: 4096.
    #[schemars(range(min = 1))]
    pub max_tokens: Field<u32>,
    /// Sampling temperature, from 0 to 2. Default: the API's own.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Field<f64>,
    /// Extended thinking, in the form of the API: `{type: enabled, budget_tokens: 2000}`.
    #[schemars(with = "Field<JsonObject>")]
    pub thinking: Field<Value>,
    /// Mark the system prompt, the tools and the conversation so far for the API's prompt cache. Default: true with
    /// `api: anthropic`. Other APIs decide for themselves.
    pub cache: Field<bool>,
    /// Additional headers: names with values, which may contain `${NAME}`. The variables in them are masked.
    pub headers: Field<SpannedTable<String>>,
    /// Additional members of the request body, sent as they are.
    #[schemars(with = "Field<JsonObject>")]
    pub extra_body: Field<Value>,
    /// Limits for one call of this agent, including the agents that it calls. If a limit is reached, the run exits with
    /// code 3.
    pub budget: Field<AgentBudgetFile>,
    /// Maximum depth of agents that call each other, including this one. Default: 3.
    #[schemars(range(min = 1, max = 16))]
    pub max_depth: Field<u32>,
}

/// Limits for one call of an agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct AgentBudgetFile {
    /// Model responses.
    #[schemars(range(min = 1))]
    pub turns: Field<u64>,
    /// Tokens of all kinds, input and output.
    #[schemars(range(min = 1))]
    pub tokens: Field<u64>,
    /// Cost in US dollars, according to `prices`.
    #[schemars(range(min = 0))]
    pub usd: Field<f64>,
}
