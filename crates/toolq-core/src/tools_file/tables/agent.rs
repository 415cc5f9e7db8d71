//! `agent`: a model with tools. No value from the input can choose its server, model or key.

use std::ops::RangeInclusive;

use redact::Mask;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tools_file::context::ToolContext;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::request::{resolve_fixed_url, resolve_headers};
use crate::tools_file::tables::values::JsonObject;
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{AgentBacking, AgentBudget, Api, Span, Template, TemplatePart};

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

const FIXED_TEXT_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "an input value can't be used here",
    "write it out, or take it from an environment variable: `${NAME}`",
);

const SYSTEM_PROMPT_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "an input value can't be used in `system`, where it could give orders to the model",
    "pass the value in `prompt`",
);

/// Members of a request that `extra_body` may not replace.
const REQUEST_KEYS: [&str; 9] = [
    "model",
    "messages",
    "system",
    "tools",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "n",
];

const DEFAULT_MAX_TURNS: u32 = 3;

const DEFAULT_MAX_TOKENS: u32 = 4_096;

const DEFAULT_MAX_DEPTH: u32 = 3;

/// Returns the backing, or `None` if the endpoint or the model is missing.
pub(crate) fn resolve_agent(
    file: &Spanned<AgentFile>,
    context: &mut ToolContext<'_>,
) -> Option<AgentBacking> {
    let agent = &file.value;
    for (field, key, hint) in [
        (
            &agent.endpoint,
            "endpoint",
            "add `endpoint: \"https://api.anthropic.com\"`",
        ),
        (&agent.model, "model", "add `model: …`"),
    ] {
        if field.is_missing() {
            let message = format!("`agent` has no `{key}`");
            context.diagnostics.error(file.key_span, message, hint);
        }
    }
    let endpoint = agent
        .endpoint
        .spanned()
        .map(|url| resolve_fixed_url(url, FIXED_TEXT_POLICY, context));
    let api_key = agent
        .api_key
        .spanned()
        .map(|key| resolve_api_key(key, context));
    let resolve_text = |field: &Field<String>, policy, context: &mut ToolContext<'_>| {
        field
            .spanned()
            .map(|text| context.resolve_template(text, policy))
    };
    let model = resolve_text(&agent.model, FIXED_TEXT_POLICY, context);
    let api = agent.api.copied().unwrap_or_default();
    Some(AgentBacking {
        api,
        endpoint: endpoint?,
        api_key,
        model: model?,
        fallback_model: resolve_text(&agent.fallback_model, FIXED_TEXT_POLICY, context),
        system: resolve_text(&agent.system, SYSTEM_PROMPT_POLICY, context),
        prompt: resolve_text(&agent.prompt, TemplatePolicy::WITH_VARIABLES, context),
        tools: agent.tools.items().map(|name| name.value.clone()).collect(),
        max_turns: resolve_number(&agent.max_turns, 1..=1_000, DEFAULT_MAX_TURNS, context),
        max_tokens: resolve_number(&agent.max_tokens, 1..=u32::MAX, DEFAULT_MAX_TOKENS, context),
        cache: agent.cache.copied().unwrap_or(api == Api::Anthropic),
        headers: resolve_headers(&agent.headers, context, |_| FIXED_TEXT_POLICY),
        extra_body: resolve_extra_body(&agent.extra_body, context),
        budget: resolve_budget(&agent.budget, context),
        max_depth: resolve_number(&agent.max_depth, 1..=16, DEFAULT_MAX_DEPTH, context),
    })
}

fn resolve_extra_body(field: &Field<Value>, context: &mut ToolContext<'_>) -> Map<String, Value> {
    let Some(given) = field.spanned() else {
        return Map::new();
    };
    let Value::Object(object) = &given.value else {
        let hint = "write the members of the request as a mapping";
        context
            .diagnostics
            .error(given.span, "this must be an object", hint);
        return Map::new();
    };
    for key in object
        .keys()
        .filter(|key| REQUEST_KEYS.contains(&key.as_str()))
    {
        let message = format!("`{key}` has a key of its own, or is set by toolq itself");
        let hint = "leave it out here";
        context.diagnostics.error(given.span, message, hint);
    }
    object.clone()
}

/// Resolves the API key, which must consist of variables only: a key in the file couldn't be masked, and anyone who can
/// read the file could read it. A default may be given for servers that accept any key, but it must be shorter than the
/// secrets that are masked.
fn resolve_api_key(key: &Spanned<String>, context: &mut ToolContext<'_>) -> Template {
    let template = context.resolve_template(key, FIXED_TEXT_POLICY);
    let texts: String = template
        .parts
        .iter()
        .filter_map(|part| match part {
            TemplatePart::Text(text) => Some(text.as_str()),
            TemplatePart::Value { .. } | TemplatePart::Env { .. } => None,
        })
        .collect();
    let in_defaults: usize = template
        .parts
        .iter()
        .filter_map(|part| match part {
            TemplatePart::Env { default, .. } => default.as_deref(),
            TemplatePart::Value { .. } | TemplatePart::Text(_) => None,
        })
        .map(str::len)
        .sum();
    let (label, hint) = if template.env_names().next().is_none() {
        (
            "no variable",
            "take it from the environment: `${ANTHROPIC_API_KEY}`; leave `api_key` out if the server needs no key",
        )
    } else if texts.trim().eq_ignore_ascii_case("bearer") {
        ("more than the key", "leave `Bearer` out; toolq adds it")
    } else if !texts.is_empty() {
        (
            "text next to the variable",
            "let the variable hold the whole key: `${ANTHROPIC_API_KEY}`",
        )
    } else if in_defaults >= Mask::MIN_SECRET_BYTES {
        (
            "a default, which is not masked",
            "leave the default out: `${ANTHROPIC_API_KEY}`; if the variable is unset, the call fails",
        )
    } else {
        return template;
    };
    let message = "an API key doesn't belong in a file";
    context.diagnostics.error((key.span, label), message, hint);
    template
}

fn resolve_number(
    field: &Field<u32>,
    range: RangeInclusive<u32>,
    default: u32,
    context: &mut ToolContext<'_>,
) -> u32 {
    if let Some(given) = field.outside(range.clone()) {
        let label = match *range.end() {
            u32::MAX => format!("at least {}", range.start()),
            max => format!("{} to {max}", range.start()),
        };
        let message = format!("{} is out of range", given.value);
        let hint = format!("leave it out for the default of {default}");
        context
            .diagnostics
            .error((given.span, &*label), message, hint);
    }
    field.copied().unwrap_or(default)
}

fn resolve_budget(field: &Field<AgentBudgetFile>, context: &mut ToolContext<'_>) -> AgentBudget {
    let Some(file) = field.value() else {
        return AgentBudget::default();
    };
    let mut refuse = |span: Span| {
        let message = "a budget must be greater than 0";
        context
            .diagnostics
            .error(span, message, "leave it out for no limit");
    };
    for count in [&file.turns, &file.tokens] {
        if let Some(zero) = count.outside(1..) {
            refuse(zero.span);
        }
    }
    if let Some(usd) = file.usd.spanned()
        && (!usd.value.is_finite() || usd.value <= 0.0)
    {
        refuse(usd.span);
    }
    AgentBudget {
        turns: file.turns.copied(),
        tokens: file.tokens.copied(),
        usd: file.usd.copied(),
    }
}
