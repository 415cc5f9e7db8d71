//! Checks agents against the rest of the file, once all tools are known.

use crate::tools_file::keys::ToolsFile;
use crate::tools_file::resolve::agent_tool_checks::check_agent_tool;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::types::{AgentBacking, Backing, Span, Template, ToolsConfig};

/// Checks each agent against the tools that it lists and the prices that its budget needs.
pub(crate) fn check_agents(
    file: &ToolsFile,
    tools: &ToolsConfig,
    diagnostics: &mut Diagnostics<'_>,
) {
    for (name, entry) in file.tools.entries() {
        let (Some(agent), Some(tool)) = (entry.value.agent.value(), tools.get(name)) else {
            continue;
        };
        for (index, tool_name) in agent.tools.items().enumerate() {
            if agent
                .tools
                .items()
                .take(index)
                .any(|other| other.value == tool_name.value)
            {
                let message = format!("`{}` is listed twice in `tools`", tool_name.value);
                diagnostics.error(
                    tool_name.span,
                    message,
                    "repeated here",
                    "remove one of them",
                );
            } else {
                check_agent_tool(tool, tool_name, tools, diagnostics);
            }
        }
        if let (Some(usd), Some(Backing::Agent(backing))) = (
            agent.budget.value().and_then(|budget| budget.usd.spanned()),
            &tool.backing,
        ) {
            check_prices(backing, usd.span, tools, diagnostics);
        }
    }
}

/// Checks that the models of an agent with a budget in dollars have prices. A model that is named by a variable is
/// looked up when it responds.
fn check_prices(
    backing: &AgentBacking,
    span: Span,
    tools: &ToolsConfig,
    diagnostics: &mut Diagnostics<'_>,
) {
    let models = [Some(&backing.model), backing.fallback_model.as_ref()];
    for model in models.into_iter().flatten().filter_map(Template::sole_text) {
        if tools.prices.for_model(model).is_none() {
            diagnostics.error(
                span,
                format!("`prices` has no entry for {model}"),
                "needs prices",
                format!("add `prices: {{{model}: {{input: …, output: …}}}}` next to `tools`"),
            );
        }
    }
}
