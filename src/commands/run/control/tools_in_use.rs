//! The tools that the turns of a host are checked with, and how they change.

use std::sync::Arc;

use crate::commands::run::control::tools_loading::{LoadFailure, load_tools};
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::{RunSession, ToolsInForce};
use toolq_core::check::CallChecker;
use toolq_core::tools_file::HostToolDeclarations;
use toolq_core::types::{DescribeResult, Tool, ToolsChange, ToolsConfig};

/// The error of a tool that came with a reload and whose `describe` program would have to run in the middle of a session.
const NOT_DESCRIBED: &str =
    "the tool came with a reload; it describes itself when toolq is started again";

/// The tools of tools.yaml and of the host.
pub(super) struct ToolsInUse<'a> {
    context: &'a CommandContext,
    host_tools: Option<HostToolDeclarations>,
    in_force: ToolsInForce<'a>,
    checker: CallChecker,
}

impl<'a> ToolsInUse<'a> {
    /// Begins with the tools of a session.
    pub(super) fn new(
        session: &RunSession<'a>,
        host_tools: Option<HostToolDeclarations>,
        has_fixed_jobs: bool,
    ) -> Self {
        Self {
            context: session.context,
            host_tools,
            in_force: ToolsInForce::new(session, has_fixed_jobs),
            checker: CallChecker::new(Arc::clone(&session.setup.tools)),
        }
    }

    pub(super) fn tools(&self) -> &Arc<ToolsConfig> {
        self.in_force.tools()
    }

    pub(super) fn checker(&self) -> &CallChecker {
        &self.checker
    }

    /// Reads tools.yaml again. What the host has announced stays. Returns what has changed.
    ///
    /// # Errors
    /// Why the tools stay as they were.
    pub(super) fn reload(&mut self) -> Result<ToolsChange, LoadFailure> {
        if self.context.tools_path.as_os_str() == "-" {
            let message = "the tools file came from stdin, so it can't be read again";
            return Err(CommandError::usage(message).into());
        }
        let mut tools = load_tools(self.context, self.host_tools.as_ref(), "")?;
        self.in_force.admit(&mut tools)?;
        // A `describe` program would have to run in between, while calls wait.
        for tool in tools.tools.iter().filter(|tool| tool.describe.is_some()) {
            if let Some(describe) = tool.describe.as_ref().filter(|_| tool.needs_describe()) {
                // Nothing else describes it.
                let _ = describe
                    .result
                    .set(DescribeResult::Err(NOT_DESCRIBED.to_owned()));
            }
        }
        let (old, new) = (callable(self.tools()), callable(&tools));
        let change = self.in_force.change(tools, &old, &new);
        self.in_force.replace(&change.tools);
        self.checker = CallChecker::new(Arc::clone(&change.tools));
        Ok(change)
    }
}

fn callable(tools: &ToolsConfig) -> Vec<Arc<Tool>> {
    let mut known = tools.known_tools();
    known.retain(|tool| !tool.awaits_list);
    known
}
