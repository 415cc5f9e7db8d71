//! The tools of an agent: whether they are there, may run where it runs, and lead back to it.

use std::sync::Arc;

use crate::text::nearest;
use crate::tools_file::agent_reach::handed;
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::spanned::Placed;
use crate::tools_file::yaml::Node;
use crate::types::{AgentBacking, Backing, Builtin, Problem, Safety, Tool, Tools};

/// Checks a tool that an agent names.
pub(crate) fn check_tool(
    agent: &Tool,
    named: &Placed<String>,
    tools: &Tools,
    findings: &mut Findings<'_>,
) {
    let Some(tool) = tools.get(&named.value) else {
        let known = tools.tools.iter().map(|tool| tool.name.as_str());
        let hint = match nearest(&named.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if is_builtin(&named.value) => {
                format!("add `builtins: [{}]` beside `tools`", named.value)
            }
            None => "an agent's tools are tools of this file".to_owned(),
        };
        let message = format!("no tool is called `{}`", named.value);
        return findings.error(named.span, message, "unknown", hint);
    };
    if let (Some(Backing::Builtin(Builtin::NewTask(agents))), Some(Backing::Agent(backing))) =
        (&tool.backing, &agent.backing)
    {
        return check_handed(agent, &handed(agents, agent, backing), named, findings);
    }
    if is_safe(agent) == Some(true) && is_safe(tool) == Some(false) {
        findings.error(
            named.span,
            format!(
                "`{}` runs beside other calls, so its tools must, too, and `{}` may not",
                agent.name, tool.name
            ),
            "not concurrency-safe",
            format!(
                "say `concurrency_safe: false` in `{}`, or take the tool out of its list",
                agent.name
            ),
        );
    }
}

/// Checks to whom an agent may hand tasks by `new_task`, which it has at `named`. The safety of a task is the agent's, and
/// a schema over its input says nothing of a task.
fn check_handed(
    agent: &Tool,
    agents: &[Arc<Tool>],
    named: &Placed<String>,
    findings: &mut Findings<'_>,
) {
    if agents.is_empty() {
        return findings.error(
            named.span,
            format!(
                "`new_task` of `{}` has nobody to hand a task to",
                agent.name
            ),
            "no other agent",
            "take it out of the list, or give the file another agent",
        );
    }
    let unsafe_one = agents.iter().find(|other| is_safe(other) != Some(true));
    if let Some(other) = unsafe_one.filter(|_| is_safe(agent) == Some(true)) {
        findings.error(
            named.span,
            format!(
                "`{}` runs beside other calls, so whom it hands tasks to must, too, and `{}` may not",
                agent.name, other.name
            ),
            "not concurrency-safe",
            format!(
                "say `concurrency_safe: false` in `{}`, or name in its `tools` only agents that may",
                agent.name
            ),
        );
    }
}

fn is_builtin(name: &str) -> bool {
    crate::tools_file::resolve::builtins::NAMES.contains(&name)
}

/// Whether every call of a tool may run beside others, or none; none where that depends on its input.
fn is_safe(tool: &Tool) -> Option<bool> {
    match (&tool.backing, &tool.safety) {
        (Some(Backing::Builtin(Builtin::AttemptCompletion | Builtin::NewTask(_))), _)
        | (_, Safety::When(_)) => None,
        (_, Safety::Declared(safe) | Safety::Effect(safe)) => Some(*safe),
        (_, Safety::Rule(rule)) => Some(rule.safe),
        (_, Safety::Default) => Some(false),
    }
}

/// A warning for each circle of agents that have each other as tools, at the first of it.
pub(crate) fn circles(tools: &Tools, tree: &Node) -> Vec<Problem> {
    let agents: Vec<(&Tool, &AgentBacking)> = tools
        .tools
        .iter()
        .filter_map(|tool| match &tool.backing {
            Some(Backing::Agent(backing)) => Some((tool.as_ref(), backing.as_ref())),
            _ => None,
        })
        .collect();
    let found = (0..agents.len()).filter_map(|first| {
        let way = circle(&agents[first..])?;
        let (tool, backing) = agents[first];
        let place = tree.place(&["tools", &tool.name], "/agent/tools");
        let message = match way.as_slice() {
            [alone] => format!("`{alone}` has itself as a tool"),
            _ => format!(
                "these agents call each other in a circle: {} › {}",
                way.join(" › "),
                tool.name
            ),
        };
        let hint = format!(
            "it ends at `max_depth`, {} agents in a row; take one out of its list, if that is not meant",
            backing.max_depth
        );
        Some(Problem::warning(place, message, "back to itself").with_hint(hint))
    });
    found.collect()
}

/// The shortest way from the first of these agents back to itself.
fn circle<'t>(agents: &[(&'t Tool, &'t AgentBacking)]) -> Option<Vec<&'t str>> {
    // Who was reached by whom, in the order in which they were.
    let mut reached: Vec<(usize, Option<usize>)> = vec![(0, None)];
    let mut next = 0;
    while let Some((at, _)) = reached.get(next).copied() {
        let (_, backing) = agents[at];
        for name in &backing.tools {
            let Some(to) = agents.iter().position(|(tool, _)| tool.name == *name) else {
                continue;
            };
            if to == 0 {
                let back = |step: &usize| reached[*step].1;
                let steps = std::iter::successors(Some(next), back);
                let mut way: Vec<&str> = steps
                    .map(|step| agents[reached[step].0].0.name.as_str())
                    .collect();
                way.reverse();
                return Some(way);
            }
            if reached.iter().all(|(seen, _)| *seen != to) {
                reached.push((to, Some(next)));
            }
        }
        next += 1;
    }
    None
}
