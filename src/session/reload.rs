//! Whether tools that were read again can replace those in force.
//!
//! Calls that were checked before the reload run as they were checked. If anything is wrong with the new file, the old
//! definitions stay in force.

use std::collections::HashMap;
use std::sync::Arc;

use redact::Mask;
use toolq_core::answer;
use toolq_core::text::{escape, truncate};
use toolq_core::types::{DescribeCommand, Tool, ToolsChange, ToolsConfig, UnlockedServer};
use toolq_engine::check_machine;
use toolq_log::records::do_the_same;

use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::RunSession;

/// The tools in force, and what they share with all that follow them.
pub(crate) struct ToolsInForce<'a> {
    context: &'a CommandContext,
    mask: Arc<Mask>,
    tools: Arc<ToolsConfig>,
    /// Whether the command line says how many calls run at once.
    has_fixed_jobs: bool,
}

impl<'a> ToolsInForce<'a> {
    /// Begins with the tools of a session.
    pub(crate) fn new(session: &RunSession<'a>, has_fixed_jobs: bool) -> Self {
        Self {
            context: session.context,
            mask: Arc::clone(&session.setup.mask),
            tools: Arc::clone(&session.setup.tools),
            has_fixed_jobs,
        }
    }

    /// Returns the tools in force.
    pub(crate) fn tools(&self) -> &Arc<ToolsConfig> {
        &self.tools
    }

    /// Checks that `tools` can come into force, and lets what tools and servers have said about themselves hold on.
    ///
    /// # Errors
    /// What is fixed when the session begins has changed, or the processes of a tool couldn't be ended.
    pub(crate) fn admit(&self, tools: &mut ToolsConfig) -> Result<(), CommandError> {
        self.require_same_setting(tools)?;
        check_machine(tools)?;
        for tool in &mut tools.tools {
            self.keep_description(tool);
        }
        for server in &tools.unlocked {
            self.keep_listing(server);
        }
        Ok(())
    }

    /// Returns what changes with `tools`: those in `new` can be called from now on, those in `old` could be before.
    pub(crate) fn change(
        &self,
        tools: ToolsConfig,
        old: &[Arc<Tool>],
        new: &[Arc<Tool>],
    ) -> ToolsChange {
        let ToolChanges {
            added,
            removed,
            changed,
        } = ToolChanges::between(old, new);
        ToolsChange {
            path: self.context.tools_path.display().to_string(),
            tools: Arc::new(tools),
            added,
            removed,
            changed,
        }
    }

    /// Puts other tools into force.
    pub(crate) fn replace(&mut self, tools: &Arc<ToolsConfig>) {
        self.tools = Arc::clone(tools);
    }

    /// # Errors
    /// What is fixed when the session begins has changed.
    fn require_same_setting(&self, tools: &ToolsConfig) -> Result<(), CommandError> {
        let refuse = |what: &str| {
            let message = format!("{what} can't change while toolq runs");
            Err(CommandError::usage(message).with_hint("start it again"))
        };
        if tools.root != self.tools.root {
            return refuse("`root`");
        }
        if !self.has_fixed_jobs && tools.concurrency != self.tools.concurrency {
            return refuse("`concurrency`");
        }
        if tools.env_file != self.tools.env_file {
            return refuse("what `env_file` says");
        }
        // What was masked at the start stays masked, and nothing else is.
        let is_new_secret = |name: &&String| {
            let value = self.context.environment.get_os(name.as_str());
            let value = value.unwrap_or_default().to_string_lossy();
            let value = value.trim();
            value.len() >= Mask::MIN_SECRET_BYTES && self.mask.apply(value) == value
        };
        match tools.secrets.iter().find(is_new_secret) {
            Some(name) => refuse(&format!("what is secret ({name} is new)")),
            None => Ok(()),
        }
    }

    /// Lets what a server has announced hold on, if it would be reached as before. It isn't asked, since calls wait.
    fn keep_listing(&self, server: &UnlockedServer) {
        let mut old = self.tools.unlocked.iter();
        let old = old.find(|old| old.server.is_same_as(&server.server));
        match old.and_then(|old| old.listing()) {
            Some(Ok(listing)) => {
                server.set_announced(Ok((listing.lock.clone(), Vec::new())));
            }
            Some(Err(why)) => server.set_announced(Err(why.to_owned())),
            None => {
                let warning = format!(
                    "the tools of the server {} aren't served until toolq is started again: tools.lock doesn't have it",
                    server.server.name
                );
                self.context.stderr.print_warning(&warning);
            }
        }
        if let Some(Err(why)) = server.listing() {
            let warning = format!(
                "the tools of the server {} aren't served: {}",
                server.server.name,
                escape(why)
            );
            self.context.stderr.print_warning(&warning);
        }
    }

    /// Gives a tool the description that it gave itself before, if the same program would be asked.
    fn keep_description(&self, tool: &mut Arc<Tool>) {
        let command = |describe: &DescribeCommand| format!("{:?}", describe.command);
        let old = self.tools.get(&tool.name);
        let old = old.and_then(|old| old.describe.as_deref());
        if let (Some(old), Some(new)) = (old, tool.describe.as_deref())
            && command(old) == command(new)
        {
            let described = Box::new(old.clone());
            Arc::make_mut(tool).describe = Some(described);
        }
    }
}

// What differs between the tools that were served and those that are.

/// How much of a list of names is shown.
const MAX_LIST_CHARS: usize = 400;

/// The names of the tools that differ, in the order of the file.
#[derive(Debug, Default, PartialEq, Eq)]
struct ToolChanges {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl ToolChanges {
    /// Compares tools that have described themselves.
    fn between(old: &[Arc<Tool>], new: &[Arc<Tool>]) -> Self {
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
