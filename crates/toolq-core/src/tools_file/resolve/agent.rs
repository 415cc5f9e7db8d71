//! `agent` as written → a backing that no value of the input can point to another server, model or key.

use std::ops::RangeInclusive;

use crate::tools_file::keys::{AgentBudgetFile, AgentFile, ToolsFile};
use crate::tools_file::resolve::agent_tools::check_tool;
use crate::tools_file::resolve::context::Scope;
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::resolve::placeholders::Sink;
use crate::tools_file::resolve::url;
use crate::tools_file::spanned::{Placed, Setting};
use crate::types::{AgentBacking, AgentBudget, Backing, Part, Span, Template, Tools};
use redact::Mask;

const FIXED: Sink = Sink::WITH_VARIABLES.refusing(
    "a value of the input cannot stand here",
    "write it out, or take it from a variable of the environment: `${NAME}`",
);
const SYSTEM: Sink = Sink::WITH_VARIABLES.refusing(
    "a value of the input cannot stand in `system`, for it would give orders",
    "hand the value over in `prompt`",
);

const MAX_TURNS: u32 = 3;
const MAX_TOKENS: u32 = 4_096;
const MAX_DEPTH: u32 = 3;

/// The backing; none where endpoint or model are missing.
pub(crate) fn resolved(
    file: &Placed<AgentFile>,
    scope: &mut Scope<'_, '_>,
) -> Option<AgentBacking> {
    let agent = &file.value;
    for (setting, key, cure) in [
        (
            &agent.endpoint,
            "endpoint",
            "add `endpoint: \"https://api.anthropic.com\"`",
        ),
        (&agent.model, "model", "add `model: …`"),
    ] {
        if setting.is_missing() {
            let message = format!("`agent` has no `{key}`");
            scope.findings.error(file.key, message, "", cure);
        }
    }
    let endpoint = agent
        .endpoint
        .given()
        .map(|url| url::fixed(url, FIXED, scope));
    let api_key = agent.api_key.given().map(|key| key_template(key, scope));
    let fixed = |setting: &Setting<String>, sink, scope: &mut Scope<'_, '_>| {
        let given = setting.given();
        given.map(|text| scope.template(text, sink))
    };
    let model = fixed(&agent.model, FIXED, scope);
    Some(AgentBacking {
        api: agent.api.value().copied().unwrap_or_default(),
        endpoint: endpoint?,
        api_key,
        model: model?,
        fallback_model: fixed(&agent.fallback_model, FIXED, scope),
        system: fixed(&agent.system, SYSTEM, scope),
        prompt: fixed(&agent.prompt, Sink::WITH_VARIABLES, scope),
        tools: agent.tools.items().map(|name| name.value.clone()).collect(),
        max_turns: number(&agent.max_turns, 1..=1_000, MAX_TURNS, scope),
        max_tokens: number(&agent.max_tokens, 1..=u32::MAX, MAX_TOKENS, scope),
        stream: agent.stream.value().copied().unwrap_or_default(),
        budget: budget(&agent.budget, scope),
        max_depth: number(&agent.max_depth, 1..=16, MAX_DEPTH, scope),
    })
}

/// A key that stands in the file can't be masked, and is read by whoever reads the file. So it is variables and nothing
/// else; a default is for servers that take any key, and shorter than what would be masked.
fn key_template(key: &Placed<String>, scope: &mut Scope<'_, '_>) -> Template {
    let template = scope.template(key, FIXED);
    let texts = template.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Value { .. } | Part::Env { .. } => None,
    });
    let texts: String = texts.collect();
    let defaults = template.parts.iter().filter_map(|part| match part {
        Part::Env { default, .. } => default.as_deref(),
        Part::Value { .. } | Part::Text(_) => None,
    });
    let in_defaults: usize = defaults.map(str::len).sum();
    let (label, hint) = if template.env_names().next().is_none() {
        (
            "no variable",
            "take it from the environment: `${ANTHROPIC_API_KEY}`; a server that needs none needs no `api_key`",
        )
    } else if texts.trim().eq_ignore_ascii_case("bearer") {
        ("not the key alone", "leave `Bearer` out, toolq adds it")
    } else if !texts.is_empty() {
        (
            "text beside the variable",
            "let the variable hold the whole key: `${ANTHROPIC_API_KEY}`",
        )
    } else if in_defaults >= Mask::SHORTEST {
        (
            "a default, which is not masked",
            "leave the default out: `${ANTHROPIC_API_KEY}`; without the variable a call is answered with an error",
        )
    } else {
        return template;
    };
    let message = "an API key doesn't belong into a file";
    scope.findings.error(key.span, message, label, hint);
    template
}

fn number(
    setting: &Setting<u32>,
    range: RangeInclusive<u32>,
    default: u32,
    scope: &mut Scope<'_, '_>,
) -> u32 {
    let Some(given) = setting.given() else {
        return default;
    };
    if !range.contains(&given.value) {
        let label = match *range.end() {
            u32::MAX => format!("at least {}", range.start()),
            most => format!("{} to {most}", range.start()),
        };
        let message = format!("{} is not possible here", given.value);
        let hint = format!("leave it out for {default}");
        scope.findings.error(given.span, message, &label, hint);
    }
    given.value
}

fn budget(setting: &Setting<AgentBudgetFile>, scope: &mut Scope<'_, '_>) -> AgentBudget {
    let Some(file) = setting.value() else {
        return AgentBudget::default();
    };
    let mut refuse = |span: Span| {
        let message = "a budget of nothing lets nothing run";
        scope
            .findings
            .error(span, message, "", "leave it out for no limit");
    };
    for count in [&file.turns, &file.tokens] {
        if let Some(none) = count.given().filter(|count| count.value == 0) {
            refuse(none.span);
        }
    }
    if let Some(usd) = file.usd.given()
        && (!usd.value.is_finite() || usd.value <= 0.0)
    {
        refuse(usd.span);
    }
    AgentBudget {
        turns: file.turns.value().copied(),
        tokens: file.tokens.value().copied(),
        usd: file.usd.value().copied(),
    }
}

/// Checks each agent against the tools that it names and the prices that its budget needs.
pub(crate) fn check_all(file: &ToolsFile, tools: &Tools, findings: &mut Findings<'_>) {
    for (name, entry) in file.tools.entries() {
        let (Some(agent), Some(tool)) = (entry.value.agent.value(), tools.get(name)) else {
            continue;
        };
        for (index, named) in agent.tools.items().enumerate() {
            if agent
                .tools
                .items()
                .take(index)
                .any(|other| other.value == named.value)
            {
                let message = format!("`{}` stands twice in `tools`", named.value);
                findings.error(named.span, message, "twice", "once is enough");
            } else {
                check_tool(tool, named, tools, findings);
            }
        }
        if let (Some(usd), Some(Backing::Agent(backing))) = (
            agent.budget.value().and_then(|budget| budget.usd.given()),
            &tool.backing,
        ) {
            check_prices(backing, usd.span, tools, findings);
        }
    }
}

/// A budget of dollars needs to know what they buy. A model that a variable names is looked up when it answers.
fn check_prices(backing: &AgentBacking, span: Span, tools: &Tools, findings: &mut Findings<'_>) {
    let models = [Some(&backing.model), backing.fallback_model.as_ref()];
    for model in models.into_iter().flatten().filter_map(Template::sole_text) {
        if tools.prices.of(model).is_none() {
            findings.error(
                span,
                format!("`prices` has nothing of {model}"),
                "needs prices",
                format!("add `prices: {{{model}: {{input: …, output: …}}}}` beside `tools`"),
            );
        }
    }
}
