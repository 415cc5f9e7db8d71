//! For commands that run nothing else: runs the `describe` programs of tools, lists the tools of servers that aren't locked,
//! and warns about failures. Each program and server is queried at most once, when its answer is first needed.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::context::CommandContext;
use crate::output::{CommandError, StderrWriter};
use crate::session::runtime::{build_runtime, new_call_setup};
use toolq_core::text::escape;
use toolq_core::types::{
    DescribeResult, EmitError, Event, EventSink, ServerConfig, Tool, ToolsConfig, UnlockedServer,
};
use toolq_engine::{Engine, ServerAnnouncement, ServerLister, check_machine};

/// Runs the `describe` commands of tools, for commands that run nothing else.
pub struct ToolDescriber<'a> {
    runtime: Runtime,
    engine: Engine,
    context: &'a CommandContext,
}

impl<'a> ToolDescriber<'a> {
    /// Creates a describer without starting any process.
    ///
    /// # Errors
    /// The processes of a tool couldn't be ended, or the runtime can't be built.
    pub fn new(
        tools: &Arc<ToolsConfig>,
        context: &'a CommandContext,
    ) -> Result<Self, CommandError> {
        check_machine(tools)?;
        let setup = new_call_setup(Arc::clone(tools), None, context);
        Ok(Self {
            runtime: build_runtime(false)?,
            engine: Engine::new(setup.engine_settings()),
            context,
        })
    }

    /// Describes `tools` in parallel. Each result is stored in its tool.
    pub fn describe_tools(&self, tools: &[Arc<Tool>]) {
        let discovery = self.engine.schema_discovery();
        let mut sink = DiscoveryWarnings(&self.context.stderr);
        self.runtime.block_on(discovery.discover(tools, &mut sink));
    }

    /// Asks `servers` for their tools, all at the same time. Each answer is stored with its server.
    pub fn list_servers(&self, servers: &[Arc<UnlockedServer>]) {
        let discovery = self.engine.schema_discovery();
        let mut sink = DiscoveryWarnings(&self.context.stderr);
        let listing = discovery.list_servers(servers, &mut sink);
        self.runtime.block_on(listing);
    }

    /// Ends the servers that were asked.
    pub fn close(self) {
        // Nothing records what happened to them.
        let _ = self
            .engine
            .end_servers(&mut DiscoveryWarnings(&self.context.stderr));
        self.engine.close();
    }
}

/// Prints warnings, and nothing else.
struct DiscoveryWarnings<'a>(&'a StderrWriter);

impl EventSink for DiscoveryWarnings<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let warnings = events.iter().flat_map(discovery_warnings);
        warnings.for_each(|warning| self.0.print_warning(&warning));
        Ok(())
    }
}

/// Returns warnings about a tool that can't describe itself, or a server that can't be asked for its tools.
pub(super) fn discovery_warnings(event: &Event<'_>) -> Vec<String> {
    match event {
        Event::Described { tool, .. } => match tool.describe_result() {
            Some(DescribeResult::Err(why)) => vec![format!(
                "{} could not describe itself, so none of its calls will run: {why}",
                tool.name
            )],
            _ => Vec::new(),
        },
        Event::ToolsListed { server, .. } => {
            let name = &server.server.name;
            match server.listing() {
                Some(Err(why)) => vec![format!(
                    "the server {name} couldn't be asked for its tools, so none of them can be called: {}",
                    escape(why)
                )],
                Some(Ok(listing)) => {
                    let problems = listing.problems.iter();
                    let warn = |problem: &String| format!("{name}: {}", escape(problem));
                    problems.map(warn).collect()
                }
                None => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

// Asks the servers of tools.yaml what they announce, for commands that run nothing else.

/// What became of asking one server.
pub(crate) struct SurveyReply {
    pub(crate) server: Arc<ServerConfig>,
    /// What it announces and how long that took, or why nothing is known.
    pub(crate) result: Result<(Arc<ServerAnnouncement>, Duration), String>,
}

/// Asks `servers` at the same time, and ends them.
///
/// # Errors
/// The runtime can't be built.
pub(crate) fn survey_servers(
    servers: &[Arc<ServerConfig>],
    tools: &Arc<ToolsConfig>,
    context: &CommandContext,
) -> Result<Vec<SurveyReply>, CommandError> {
    let settings = new_call_setup(Arc::clone(tools), None, context).engine_settings();
    let runtime = build_runtime(false)?;
    let lister = Arc::new(ServerLister::new(&settings));
    let questions = servers.iter().map(|server| {
        let (server, lister) = (Arc::clone(server), Arc::clone(&lister));
        runtime.spawn(async move {
            let result = lister.list(&server).await;
            SurveyReply { server, result }
        })
    });
    let questions: Vec<_> = questions.collect();
    let replies = runtime.block_on(async {
        let mut replies = Vec::new();
        for question in questions {
            // A panic has been reported.
            replies.extend(question.await.ok());
        }
        replies
    });
    lister.close();
    Ok(replies)
}
