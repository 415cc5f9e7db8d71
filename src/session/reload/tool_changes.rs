//! What differs between the tools that were served and those that are.

use std::collections::HashMap;
use std::sync::Arc;

use toolq_core::answer;
use toolq_core::text::{escape, truncate};
use toolq_core::types::{Tool, ToolsChange};
use toolq_log::records::do_the_same;

/// How much of a list of names is shown.
const MAX_LIST_CHARS: usize = 400;

/// The names of the tools that differ, in the order of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToolChanges {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(super) changed: Vec<String>,
}

impl ToolChanges {
    /// Compares tools that have described themselves.
    pub(super) fn between(old: &[Arc<Tool>], new: &[Arc<Tool>]) -> Self {
        let (old_by_name, new_by_name) = (by_name(old), by_name(new));
        let mut changes = Self::default();
        for tool in new {
            match old_by_name.get(&*tool.name) {
                None => changes.added.push(tool.name.clone()),
                Some(old) if !is_same(old, tool) => changes.changed.push(tool.name.clone()),
                Some(_) => {}
            }
        }
        let gone = old
            .iter()
            .filter(|tool| !new_by_name.contains_key(&*tool.name));
        changes.removed = gone.map(|tool| tool.name.clone()).collect();
        changes
    }
}

fn by_name(tools: &[Arc<Tool>]) -> HashMap<&str, &Tool> {
    let tools = tools.iter();
    tools.map(|tool| (&*tool.name, &**tool)).collect()
}

/// Returns whether calls do the same under the same conditions, clients read the same, and the limits are the same.
fn is_same(one: &Tool, other: &Tool) -> bool {
    let limits = |tool: &Tool| {
        format!(
            "{:?}",
            (
                &tool.timeout,
                &tool.retry,
                tool.max_output,
                tool.max_saved,
                tool.cache,
            )
        )
    };
    do_the_same(one, other)
        && one.approve == other.approve
        && one.safety == other.safety
        && answer::mcp_declaration(one) == answer::mcp_declaration(other)
        && limits(one) == limits(other)
}

/// Says in one line what has changed.
pub(crate) fn describe_changes(change: &ToolsChange) -> String {
    let lists = [
        ("added", &change.added),
        ("removed", &change.removed),
        ("changed", &change.changed),
    ];
    let lists = lists.iter().filter(|(_, names)| !names.is_empty());
    let lists: Vec<String> = lists
        .map(|(what, names)| {
            let names = names.join(", ");
            format!("{what}: {}", truncate(&escape(&names), MAX_LIST_CHARS))
        })
        .collect();
    match lists.as_slice() {
        [] => format!("{} was read again: no tool has changed", change.path),
        lists => format!("{} was read again; {}", change.path, lists.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolq_testing::sample_tool;

    use super::*;

    #[test]
    fn every_kind_of_change_is_named() {
        let tool = |name: &str| Arc::new(sample_tool(name));
        let described = Arc::new(Tool {
            description: "other".to_owned(),
            ..sample_tool("described")
        });
        let mut patient = sample_tool("patient");
        patient.timeout.after += Duration::from_secs(1);
        let old = [
            tool("gone"),
            tool("same"),
            tool("described"),
            tool("patient"),
        ];
        let new = [tool("new"), described, tool("same"), Arc::new(patient)];
        let changes = ToolChanges::between(&old, &new);
        let expected = ToolChanges {
            added: vec!["new".to_owned()],
            removed: vec!["gone".to_owned()],
            changed: vec!["described".to_owned(), "patient".to_owned()],
        };
        assert_eq!(changes, expected);
    }
}
