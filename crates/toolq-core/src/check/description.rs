//! Parses the output of a tool's `describe` command. That output isn't trusted: it must follow the same rules as
//! tools.yaml.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::json::{Input, find_lost_digits};
use crate::json_schema::find_schema_errors;
use crate::tools_file::select_agent_tools;
use crate::types::{Backing, BuiltinTool, Call, Tool, ToolDescription, ToolsConfig};

/// Maximum size of a tool's `describe` output, in bytes.
pub const MAX_DESCRIPTION_BYTES: u64 = 256 << 10;

/// The output of `describe`. Other members are ignored.
#[derive(Deserialize)]
struct DescribeOutput {
    description: Option<String>,
    input_schema: Value,
}

/// Parses the output of a tool's `describe` command.
///
/// # Errors
/// What is wrong with `output`.
pub fn parse_description(output: &str) -> Result<ToolDescription, String> {
    let printed: DescribeOutput = serde_json::from_str(output).map_err(|error| {
        format!("its output isn't {{\"description\": …, \"input_schema\": …}}: {error}")
    })?;
    if let Some(integer) = find_lost_digits(output) {
        return Err(format!("its output has {integer}"));
    }
    let schema = printed.input_schema;
    if let Some(fault) = find_schema_errors(&schema).into_iter().next() {
        return Err(format!(
            "its input_schema can't be used: {}{}{}",
            fault.pointer,
            if fault.pointer.is_empty() { "" } else { ": " },
            fault.message
        ));
    }
    if schema.get("type").is_none_or(|kind| kind != "object") {
        return Err("its input_schema doesn't have `\"type\": \"object\"`".to_owned());
    }
    Ok(ToolDescription {
        description: printed.description,
        input_schema: schema,
    })
}

/// Returns the tools that must be described before `calls` can be checked, by themselves or by their servers: those that
/// the calls name and, for agents, those that the agents may call. Lists each tool once.
pub fn undescribed_tools<'c>(
    tools: &ToolsConfig,
    calls: impl IntoIterator<Item = &'c Call>,
) -> Vec<Arc<Tool>> {
    let mut collector = UndescribedCollector::default();
    for call in calls {
        if let Some(tool) = tools.find(&call.name) {
            collector.visit(tools, &tool, Some(call));
        }
    }
    collector.undescribed
}

/// Walks tools and collects those that still have to be described.
#[derive(Default)]
struct UndescribedCollector {
    seen: HashSet<String>,
    undescribed: Vec<Arc<Tool>>,
}

impl UndescribedCollector {
    /// Visits a tool and the tools that it may call. `call` is the call that names it; `None` if an agent may call it,
    /// since the input isn't known yet.
    fn visit(&mut self, tools: &ToolsConfig, tool: &Arc<Tool>, call: Option<&Call>) {
        match &tool.backing {
            // Not marked as seen: another call may name another agent.
            Some(Backing::Builtin(BuiltinTool::NewTask(agents))) => {
                let named = call.map(|call| call.input.as_ref().ok().map(Input::to_value));
                let is_named = |agent: &Tool| match &named {
                    Some(input) => input
                        .as_ref()
                        .is_some_and(|input| input["agent"] == agent.name.as_str()),
                    None => true,
                };
                for agent in agents.iter().filter(|agent| is_named(agent)) {
                    self.visit(tools, agent, None);
                }
                return;
            }
            _ if !self.seen.insert(tool.name.clone()) => return,
            _ => {}
        }
        let is_asked = tool.awaits_list && tools.servers_to_ask(tool).is_empty();
        if tool.needs_describe() && !is_asked {
            self.undescribed.push(Arc::clone(tool));
        }
        if let Some(Backing::Agent(agent)) = &tool.backing {
            for own in select_agent_tools(tools, tool, agent) {
                self.visit(tools, &own, None);
            }
        }
    }
}
