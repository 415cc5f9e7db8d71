//! Which tools have changed since a task last called them.

use std::collections::BTreeSet;
use std::fmt;

use crate::records::ToolMeaning;
use crate::resume::history::TaskHistory;
use toolq_core::types::{Backing, CheckedCall, Tool, ToolsConfig};

/// How a tool has changed since a task last called it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolChange {
    name: String,
    kind: ToolChangeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ToolChangeKind {
    /// These keys of tools.yaml mean something else.
    Changed(Vec<String>),
    /// tools.yaml no longer has the tool.
    Removed,
    /// An older toolq recorded its calls.
    Unknown,
}

impl fmt::Display for ToolChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.kind {
            ToolChangeKind::Changed(aspects) => write!(f, "{name} (its {})", aspects.join(", ")),
            ToolChangeKind::Removed => write!(f, "{name} (it is no longer declared)"),
            ToolChangeKind::Unknown => write!(
                f,
                "{name} (an older toolq logged it, so whether it has changed isn't known)"
            ),
        }
    }
}

impl TaskHistory {
    /// Returns the changed tools on which a call depends that still has to run: its own and, if an agent works on it,
    /// those of the agent. A tool that the task never called has nothing to be compared with.
    pub fn changes_affecting(
        &self,
        checked: &CheckedCall,
        tools: &ToolsConfig,
    ) -> BTreeSet<ToolChange> {
        let mut changes = BTreeSet::new();
        if self.needs_current_tools(checked) {
            let mut seen = BTreeSet::new();
            self.add_changes(&checked.call.name, tools, &mut seen, &mut changes);
        }
        changes
    }

    fn add_changes(
        &self,
        name: &str,
        tools: &ToolsConfig,
        seen: &mut BTreeSet<String>,
        changes: &mut BTreeSet<ToolChange>,
    ) {
        if !seen.insert(name.to_owned()) {
            return;
        }
        let tool = tools.find(name);
        let tool = tool.as_deref();
        changes.extend(self.tool_change(name, tool));
        if let Some(Backing::Agent(agent)) = tool.and_then(|tool| tool.backing.as_ref()) {
            for name in &agent.tools {
                self.add_changes(name, tools, seen, changes);
            }
        }
    }

    /// Returns how a tool has changed since the task last called it, or `None` if it means the same or wasn't called.
    fn tool_change(&self, name: &str, tool: Option<&Tool>) -> Option<ToolChange> {
        let logged = self.tool_meanings.get(name)?;
        let kind = match (tool, logged) {
            (None, _) => ToolChangeKind::Removed,
            (Some(_), None) => ToolChangeKind::Unknown,
            (Some(tool), Some(logged)) => {
                let mut aspects = logged.difference(&ToolMeaning::new(tool));
                // What its `describe` will print, or its server will say, isn't known yet.
                aspects.retain(|aspect| !(tool.needs_describe() && aspect == "input_schema"));
                if aspects.is_empty() {
                    return None;
                }
                ToolChangeKind::Changed(aspects)
            }
        };
        let name = name.to_owned();
        Some(ToolChange { name, kind })
    }
}
