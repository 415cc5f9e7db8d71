//! What does a tool's work: `agent`, a model with tools.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::spanned::Setting;
use crate::types::Api;

/// A model that works on a task with tools of this file, turn by turn.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["endpoint", "model"]))]
pub struct AgentFile {
    /// What the endpoint speaks: `anthropic` (the default: the Messages API) or `openai-chat` (chat completions).
    pub api: Setting<Api>,
    /// The server: `https://api.anthropic.com`. A path that ends in a version (`/v1`) or in the API's own is kept.
    pub endpoint: Setting<String>,
    /// The key, from the environment: `${ANTHROPIC_API_KEY}`. Masked in every output.
    pub api_key: Setting<String>,
    /// The model.
    pub model: Setting<String>,
    /// Who is asked once in the model's place, where that is overloaded.
    pub fallback_model: Setting<String>,
    /// What the model is told before all. Holds no value of the input.
    pub system: Setting<String>,
    /// The task: a template over the input. Default: the input as JSON.
    pub prompt: Setting<String>,
    /// The tools of this file that it may call.
    pub tools: Setting<Vec<Setting<String>>>,
    /// Answers after which it has to be done. Default: 3.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_turns: Setting<u32>,
    /// Tokens of one answer. Default: 4096.
    #[schemars(range(min = 1))]
    pub max_tokens: Setting<u32>,
    /// Whether answers are asked for as streams: calls start while the rest is still spoken. Default: false.
    pub stream: Setting<bool>,
    /// What one call of it may use, with the agents that it calls. Where it is used up the run exits with 3.
    pub budget: Setting<AgentBudgetFile>,
    /// How many agents may call each other in a row, itself counted. Default: 3.
    #[schemars(range(min = 1, max = 16))]
    pub max_depth: Setting<u32>,
}

/// What one call of an agent may use.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct AgentBudgetFile {
    /// Answers of models.
    #[schemars(range(min = 1))]
    pub turns: Setting<u64>,
    /// Tokens of all kinds, read and written.
    #[schemars(range(min = 1))]
    pub tokens: Setting<u64>,
    /// US dollars, by `prices`.
    #[schemars(range(min = 0))]
    pub usd: Setting<f64>,
}
