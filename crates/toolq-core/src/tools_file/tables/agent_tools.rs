//! The tools of an agent: which it may call, and the agents to which it may delegate through `new_task`. Checks that they
//! exist and may run wherever the agent runs, and whether they lead back to it.

use std::sync::Arc;

use crate::text::suggest_name;
use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::builtins::{BUILTIN_NAMES, new_task_tool};
use crate::tools_file::tables::tool::ToolFile;
use crate::tools_file::yaml::YamlNode;
use crate::types::{
    AgentBacking, Backing, BuiltinTool, FileProblem, SafetyPolicy, Span, Template, Tool,
    ToolsConfig,
};

/// Returns the tools that `agent` may call, in the order of its list. `backing` is the agent's own.
///
/// Its `new_task` offers only the agents to which it may delegate, and is left out if there are none.
pub fn select_agent_tools(
    all: &ToolsConfig,
    agent: &Tool,
    backing: &AgentBacking,
) -> Vec<Arc<Tool>> {
    backing
        .tools
        .iter()
        .filter_map(|name| all.find(name))
        .filter_map(|tool| match &tool.backing {
            Some(Backing::Builtin(BuiltinTool::NewTask(agents))) => {
                let agents = allowed_delegates(agents, agent, backing);
                (!agents.is_empty()).then(|| Arc::new(new_task_tool(agents, &tool.messages)))
            }
            _ => Some(tool),
        })
        .collect()
}

/// Returns those of `agents` to which `agent` may delegate through `new_task`: the ones on its tool list or, if it
/// lists no agent, all except itself.
fn allowed_delegates(agents: &[Arc<Tool>], agent: &Tool, backing: &AgentBacking) -> Vec<Arc<Tool>> {
    let filter_agents = |wanted: &dyn Fn(&Tool) -> bool| -> Vec<Arc<Tool>> {
        agents.iter().filter(|tool| wanted(tool)).cloned().collect()
    };
    let own_agents = filter_agents(&|tool| backing.tools.contains(&tool.name));
    if own_agents.is_empty() {
        return filter_agents(&|tool| tool.name != agent.name);
    }
    own_agents
}

// Checks agents against the rest of the file, once all tools are known.

/// Checks each agent against the tools that it lists and the prices that its budget needs.
pub(crate) fn check_agents(
    declared: &Field<SpannedTable<ToolFile>>,
    tools: &ToolsConfig,
    diagnostics: &mut Diagnostics,
) {
    for (name, entry) in declared.entries() {
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
                    (tool_name.span, "repeated here"),
                    message,
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
    diagnostics: &mut Diagnostics,
) {
    let models = [Some(&backing.model), backing.fallback_model.as_ref()];
    for model in models.into_iter().flatten().filter_map(Template::sole_text) {
        if tools.prices.for_model(model).is_none() {
            diagnostics.error(
                (span, "needs prices"),
                format!("`prices` has no entry for {model}"),
                format!("add `prices: {{{model}: {{input: …, output: …}}}}` next to `tools`"),
            );
        }
    }
}

/// Checks a tool that an agent lists.
fn check_agent_tool(
    agent: &Tool,
    tool_name: &Spanned<String>,
    tools: &ToolsConfig,
    diagnostics: &mut Diagnostics,
) {
    let Some(tool) = tools.find(&tool_name.value) else {
        let known = tools.tools.iter().map(|tool| tool.name.as_str());
        let hint = match suggest_name(&tool_name.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if BUILTIN_NAMES.contains(&&*tool_name.value) => {
                format!("add `builtins: [{}]` next to `tools`", tool_name.value)
            }
            None => "an agent can only use tools from this file".to_owned(),
        };
        let message = format!("no tool is called `{}`", tool_name.value);
        return diagnostics.error((tool_name.span, "unknown"), message, hint);
    };
    if let (Some(Backing::Builtin(BuiltinTool::NewTask(agents))), Some(Backing::Agent(backing))) =
        (&tool.backing, &agent.backing)
    {
        return check_delegates(
            agent,
            &allowed_delegates(agents, agent, backing),
            tool_name,
            diagnostics,
        );
    }
    // What a server will say may make a call of its tool safe; one that isn't doesn't start.
    if tool.awaits_list {
        return;
    }
    if static_safety(agent) == Some(true) && static_safety(&tool) == Some(false) {
        diagnostics.error(
            (tool_name.span, "not concurrency-safe"),
            format!(
                "`{}` runs in parallel with other calls, but its tool `{}` can't",
                agent.name, tool.name
            ),
            format!(
                "set `concurrency_safe: false` on `{}`, or remove the tool from its list",
                agent.name
            ),
        );
    }
}

/// Checks the agents to which an agent may delegate through `new_task`, which it lists as `tool_name`.
///
/// A task is as safe as the agent that gets it. If that depends on a schema, the task counts as unsafe, since the
/// schema is about the agent's input and not about a task.
fn check_delegates(
    agent: &Tool,
    delegates: &[Arc<Tool>],
    tool_name: &Spanned<String>,
    diagnostics: &mut Diagnostics,
) {
    if delegates.is_empty() {
        return diagnostics.error(
            (tool_name.span, "no other agent"),
            format!("`new_task` of `{}` has no agent to delegate to", agent.name),
            "remove it from the list, or add another agent to the file",
        );
    }
    let unsafe_one = delegates
        .iter()
        .find(|other| static_safety(other) != Some(true));
    if let Some(other) = unsafe_one.filter(|_| static_safety(agent) == Some(true)) {
        diagnostics.error(
            (tool_name.span, "not concurrency-safe"),
            format!(
                "`{}` runs in parallel with other calls, but may delegate to `{}`, which can't",
                agent.name, other.name
            ),
            format!(
                "set `concurrency_safe: false` on `{}`, or list only concurrency-safe agents in its `tools`",
                agent.name
            ),
        );
    }
}

/// Returns whether calls of a tool are concurrency-safe, or `None` if that depends on the call.
fn static_safety(tool: &Tool) -> Option<bool> {
    match (&tool.backing, &tool.safety) {
        (Some(Backing::Builtin(BuiltinTool::AttemptCompletion | BuiltinTool::NewTask(_))), _)
        | (_, SafetyPolicy::When(_)) => None,
        (_, SafetyPolicy::Declared(safe) | SafetyPolicy::Effect(safe)) => Some(*safe),
        (_, SafetyPolicy::Rule(rule)) => Some(rule.safe),
        (_, SafetyPolicy::Default) => Some(false),
    }
}

/// Returns a warning for each cycle of agents that have each other as tools, at the first agent in it.
pub(crate) fn agent_cycle_warnings(tools: &ToolsConfig, tree: &YamlNode) -> Vec<FileProblem> {
    let agents: Vec<(&Tool, &AgentBacking)> = tools
        .tools
        .iter()
        .filter_map(|tool| match &tool.backing {
            Some(Backing::Agent(backing)) => Some((tool.as_ref(), backing.as_ref())),
            _ => None,
        })
        .collect();
    let found = (0..agents.len()).filter_map(|first| {
        let cycle = find_shortest_cycle(&agents[first..])?;
        let (tool, backing) = agents[first];
        let span = tree.span_at(&["tools", &tool.name], "/agent/tools");
        let message = match cycle.as_slice() {
            [alone] => format!("`{alone}` has itself as a tool"),
            _ => format!(
                "these agents call each other in a cycle: {} › {}",
                cycle.join(" › "),
                tool.name
            ),
        };
        let hint = format!(
            "`max_depth` ends it after {} nested agents; if it isn't intended, remove one of them from a list",
            backing.max_depth
        );
        Some(FileProblem::warning(span, message, "leads back to itself").with_hint(hint))
    });
    found.collect()
}

/// Returns the shortest path from the first of these agents back to itself.
fn find_shortest_cycle<'t>(agents: &[(&'t Tool, &'t AgentBacking)]) -> Option<Vec<&'t str>> {
    // Each agent that was reached, in order, with the entry in this list from which it was reached.
    let mut reached: Vec<(usize, Option<usize>)> = vec![(0, None)];
    let mut next = 0;
    while let Some((index, _)) = reached.get(next).copied() {
        let (_, backing) = agents[index];
        for name in &backing.tools {
            let Some(to) = agents.iter().position(|(tool, _)| tool.name == *name) else {
                continue;
            };
            if to == 0 {
                let back = |step: &usize| reached[*step].1;
                let mut cycle: Vec<&str> = std::iter::successors(Some(next), back)
                    .map(|step| agents[reached[step].0].0.name.as_str())
                    .collect();
                cycle.reverse();
                return Some(cycle);
            }
            if reached.iter().all(|(seen, _)| *seen != to) {
                reached.push((to, Some(next)));
            }
        }
        next += 1;
    }
    None
}
