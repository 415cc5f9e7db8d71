//! Checks that this machine can do what tools need, before any of them runs.

use toolq_core::exit::CommandError;
use toolq_core::types::{Backing, Leftovers, MissingProtection, Tool, ToolsConfig};

use crate::command::find_sandbox_gaps;

/// Why nothing may run: processes of a tool couldn't all be ended.
#[derive(Debug, thiserror::Error)]
#[error(
    "/proc is missing or shows another PID namespace, so the processes of {name} couldn't all be ended; nothing ran"
)]
pub struct UntrackableTool {
    /// The tool or server.
    pub name: String,
}

impl From<UntrackableTool> for CommandError {
    fn from(error: UntrackableTool) -> Self {
        Self::usage(error).with_hint(
            "mount /proc (`mount -t proc proc /proc`, or `unshare --mount-proc`), or declare that processes may stay: \
             `defaults: {leftovers: allow}`",
        )
    }
}

/// Checks that the processes of all tools can be ended. Returns a warning if a sandbox isn't applied as a whole, as its
/// `missing: warn` allows.
///
/// # Errors
/// `/proc` is missing or belongs to another PID namespace, and a tool isn't declared with `leftovers: allow`.
pub fn check_machine(tools: &ToolsConfig) -> Result<Option<String>, UntrackableTool> {
    if let Some(name) = find_untrackable(tools) {
        let name = name.to_owned();
        return Err(UntrackableTool { name });
    }
    let gap = find_allowed_gap(tools);
    Ok(gap.map(|(name, gaps)| {
        let gaps = gaps.join(", or ");
        format!("the sandbox of {name} leaves something out: this system can't confine {gaps}")
    }))
}

/// Returns the name of the first tool or server whose processes couldn't all be ended in the end, because `/proc` doesn't show
/// them, although it isn't declared with `leftovers: allow`.
fn find_untrackable(tools: &ToolsConfig) -> Option<&str> {
    let starts_processes = |tool: &Tool| match &tool.backing {
        Some(Backing::Command(command)) => command.leftovers != Leftovers::Allow,
        Some(Backing::Mcp(mcp)) => mcp.server.program().is_some(),
        _ => tool.needs_describe(),
    };
    if procfence::shows_own_pid_namespace() {
        return None;
    }
    let untracked = tools.tools.iter().find(|tool| starts_processes(tool));
    let mut unlocked = tools.unlocked.iter().map(|server| &server.server);
    untracked.map(|tool| tool.name.as_str()).or_else(|| {
        let program = unlocked.find(|server| server.program().is_some());
        program.map(|server| server.name.as_str())
    })
}

/// Returns the first sandbox of `tools` that isn't applied as a whole on this system, as its `missing: warn` allows, and
/// what is left out.
fn find_allowed_gap(tools: &ToolsConfig) -> Option<(String, Vec<&'static str>)> {
    let of_tools = tools.tools.iter().filter_map(|tool| match &tool.backing {
        Some(Backing::Command(command)) => Some((&tool.name, command)),
        _ => None,
    });
    let servers = tools.servers.iter();
    let of_servers = servers.filter_map(|server| Some((&server.name, server.program()?)));
    of_tools.chain(of_servers).find_map(|(name, command)| {
        let sandbox = command.sandbox.as_ref()?;
        let gaps = find_sandbox_gaps(&sandbox.network);
        let is_applied = gaps.is_empty() || sandbox.missing == MissingProtection::Refuse;
        (!is_applied).then(|| (name.clone(), gaps))
    })
}
