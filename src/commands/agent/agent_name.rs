//! Which agent `toolq agent` runs.

use std::sync::Arc;

use crate::output::CommandError;
use toolq_core::text::suggest_name;
use toolq_core::types::{Backing, Tool, ToolsConfig};

/// Finds the agent with this name.
pub(crate) fn find_agent<'t>(
    tools: &'t ToolsConfig,
    name: &str,
) -> Result<&'t Arc<Tool>, CommandError> {
    let is_agent = |tool: &&Arc<Tool>| matches!(tool.backing, Some(Backing::Agent(_)));
    let agents = tools.tools.iter().filter(is_agent);
    let known: Vec<&str> = agents.map(|tool| tool.name.as_str()).collect();
    match tools.get(name) {
        Some(tool) if known.contains(&name) => Ok(tool),
        other => {
            let message = match other {
                Some(_) => format!("{name} is a tool, but not an agent"),
                None => format!("no agent is called {name}"),
            };
            let hint = match suggest_name(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "tools.yaml has no tool with an `agent`".to_owned(),
                None => format!("known: {}", known.join(", ")),
            };
            Err(CommandError::usage(message).with_hint(hint))
        }
    }
}
