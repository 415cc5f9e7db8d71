//! What a tool printed of itself → the tool with it, or why that can't be used. Nobody vouches for it: the rules for it are
//! those of the file.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::json::Input;
use crate::json_schema::{bundled, schema_faults};
use crate::tools_file::tools_of;
use crate::types::{Backing, Builtin, Call, Description, Tool, Tools};

/// Bytes that a tool may print of itself.
pub const MAX_DESCRIPTION: u64 = 256 << 10;

/// What `describe` prints. Other members are passed over.
#[derive(Deserialize)]
struct Printed {
    description: Option<String>,
    input_schema: Value,
}

/// What a tool printed of itself. Files that its schema refers to stand in `dir`.
///
/// # Errors
/// What is wrong with `printed`.
pub fn described(printed: &str, dir: &Path) -> Result<Description, String> {
    let printed: Printed = serde_json::from_str(printed).map_err(|error| {
        format!("what it prints is no {{\"description\": …, \"input_schema\": …}}: {error}")
    })?;
    let mut schema = printed.input_schema;
    if let Some(fault) = schema_faults(&schema, dir).into_iter().next() {
        return Err(format!(
            "its input_schema can't be used: {}{}{}",
            fault.pointer,
            if fault.pointer.is_empty() { "" } else { ": " },
            fault.message
        ));
    }
    if schema.get("type").is_none_or(|kind| kind != "object") {
        return Err("its input_schema does not say `\"type\": \"object\"`".to_owned());
    }
    if let Ok(Some(whole)) = bundled(&schema, dir) {
        schema = whole;
    }
    Ok(Description {
        description: printed.description,
        input_schema: schema,
    })
}

/// The tools that are still to be asked what they take before `calls` can be checked: those that the calls name, and those
/// that an agent may call which they name. Each once.
pub fn unasked<'c>(tools: &Tools, calls: impl IntoIterator<Item = &'c Call>) -> Vec<Arc<Tool>> {
    let mut found = Found::default();
    for call in calls {
        if let Some(tool) = tools.get(&call.name) {
            found.add(tools, tool, Some(call));
        }
    }
    found.unasked
}

/// The tools that were looked at.
#[derive(Default)]
struct Found {
    seen: HashSet<String>,
    unasked: Vec<Arc<Tool>>,
}

impl Found {
    /// Looks at a tool, and at those behind it. `call` is what the input asks of it; what an agent may ask
    /// of it is not known.
    fn add(&mut self, tools: &Tools, tool: &Arc<Tool>, call: Option<&Call>) {
        match &tool.backing {
            // Another call of it may name another agent.
            Some(Backing::Builtin(Builtin::NewTask(agents))) => {
                let named = call.map(|call| call.input.as_ref().ok().map(Input::value));
                let is_named = |agent: &Tool| match &named {
                    Some(input) => input
                        .as_ref()
                        .is_some_and(|input| input["agent"] == agent.name.as_str()),
                    None => true,
                };
                for agent in agents.iter().filter(|agent| is_named(agent)) {
                    self.add(tools, agent, None);
                }
                return;
            }
            _ if !self.seen.insert(tool.name.clone()) => return,
            _ => {}
        }
        if tool.is_unasked() {
            self.unasked.push(Arc::clone(tool));
        }
        if let Some(Backing::Agent(agent)) = &tool.backing {
            for own in tools_of(tools, tool, agent) {
                self.add(tools, &own, None);
            }
        }
    }
}
