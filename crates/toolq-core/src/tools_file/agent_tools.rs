//! Selects the tools that an agent may call, and the agents to which it may delegate through `new_task`.

use std::sync::Arc;

use crate::tools_file::resolve::new_task_tool;
use crate::types::{AgentBacking, Backing, BuiltinTool, Tool, ToolsConfig};

/// Returns the tools that `agent` may call, in the order of its list. `backing` is the agent's own.
///
/// Its `new_task` offers only the agents to which it may delegate, and is left out if there are none.
pub fn select_agent_tools(
    all: &ToolsConfig,
    agent: &Tool,
    backing: &AgentBacking,
) -> Vec<Arc<Tool>> {
    let named = backing.tools.iter().filter_map(|name| all.find(name));
    let selected = named.filter_map(|tool| match &tool.backing {
        Some(Backing::Builtin(BuiltinTool::NewTask(agents))) => {
            let agents = allowed_delegates(agents, agent, backing);
            (!agents.is_empty()).then(|| Arc::new(new_task_tool(agents, &tool.messages)))
        }
        _ => Some(tool),
    });
    selected.collect()
}

/// Returns those of `agents` to which `agent` may delegate through `new_task`: the ones on its tool list or, if it
/// lists no agent, all except itself.
pub(crate) fn allowed_delegates(
    agents: &[Arc<Tool>],
    agent: &Tool,
    backing: &AgentBacking,
) -> Vec<Arc<Tool>> {
    let filter_agents = |wanted: &dyn Fn(&Tool) -> bool| -> Vec<Arc<Tool>> {
        let found = agents.iter().filter(|tool| wanted(tool));
        found.cloned().collect()
    };
    let own_agents = filter_agents(&|tool| backing.tools.contains(&tool.name));
    if own_agents.is_empty() {
        return filter_agents(&|tool| tool.name != agent.name);
    }
    own_agents
}
