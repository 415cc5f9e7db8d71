//! The tools that a call may use: its own and, if that is an agent, those that the agent may call.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolq_core::tools_file::select_agent_tools;
use toolq_core::types::{Backing, BuiltinTool, Tool, ToolsConfig};

/// Tools by name.
pub type ReachableTools = BTreeMap<String, Arc<Tool>>;

/// Adds `tool` and the tools that it may call.
pub fn add_reachable_tools(found: &mut ReachableTools, tools: &ToolsConfig, tool: &Arc<Tool>) {
    if found.contains_key(&tool.name) {
        return;
    }
    found.insert(tool.name.clone(), Arc::clone(tool));
    match &tool.backing {
        Some(Backing::Agent(agent)) => {
            for own in select_agent_tools(tools, tool, agent) {
                add_reachable_tools(found, tools, &own);
            }
        }
        Some(Backing::Builtin(BuiltinTool::NewTask(agents))) => {
            for agent in agents {
                add_reachable_tools(found, tools, agent);
            }
        }
        _ => {}
    }
}
